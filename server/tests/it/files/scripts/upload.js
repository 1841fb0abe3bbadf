// Uploads a file with tus-js-client, as it is: `upload.js ENDPOINT TOKEN FILE MEMORY [STOP]`. It keeps the address of the upload in the
// file MEMORY, and goes on with an upload that it finds there. With STOP it ends itself once so many bytes are on their way.
const fs = require("node:fs");
const path = require("node:path");
const tus = require("tus-js-client");

const [endpoint, token, file, memory, stop] = process.argv.slice(2);

const upload = new tus.Upload(fs.createReadStream(file), {
  endpoint,
  headers: { authorization: `Bearer ${token}` },
  metadata: { filename: path.basename(file), filetype: "text/x-lie" },
  chunkSize: 1_000_000,
  retryDelays: [100, 500, 1_000],
  urlStorage: new tus.FileUrlStorage(memory),
  fingerprint: async () => "the file",
  onProgress: (sent) => {
    if (stop && sent >= Number(stop)) process.exit(3);
  },
  onError: (error) => {
    console.error(String(error));
    process.exit(1);
  },
  onSuccess: () => console.log(`uploaded ${upload.url}`),
});

upload.findPreviousUploads().then((earlier) => {
  if (earlier.length > 0) {
    console.log(`resumes ${earlier[0].uploadUrl}`);
    upload.resumeFromPreviousUpload(earlier[0]);
  }
  upload.start();
});
