// The things that the service worker has to know when no page is there to tell it: whose browser this is, what a notification may show, and the
// texts for it. The page keeps it, in the browser's caches, since a service worker has no other place that a page can clear so simply.

const CACHE = "push";
const PLACE = "/push";

/** Keeps {self, shows, texts}. */
export async function keepDevice(device) {
  const cache = await caches.open(CACHE);
  await cache.put(PLACE, new Response(JSON.stringify(device)));
}

/** It as it was kept; nothing, if this browser is not told while no tab is open. */
export async function keptDevice() {
  const kept = await globalThis.caches?.match(PLACE, { cacheName: CACHE });
  return kept?.json();
}

/** Forgets it. */
export const forgetDevice = async () => { await globalThis.caches?.delete(CACHE); };

/** The subscription of the device, as the server takes it; `seq`: how far the device has come. */
export function toServer(subscription, seq) {
  const { endpoint, keys } = subscription.toJSON();
  return { endpoint, keys, ...(seq !== undefined && { seq }) };
}

/** Subscribes this browser with the key of the server. */
export function subscribe(registration, key) {
  return registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
}
