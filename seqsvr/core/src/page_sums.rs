//! A sum in each page of a SQLite database: what is read from the disk is what was written there, or it is refused.
//!
//! SQLite believes its disk. The layer below it, its VFS, is the one place that all pages of all connections of a process pass. So there,
//! each page gets a sum over its place and its bytes when it goes into a database, in its last eight bytes, which SQLite leaves alone; and
//! the sum is compared when the page is read from there. A page that differs is an error of reading ([`DAMAGED_PAGE`]), and is told by
//! [`damaged`]. A database that was made without sums is refused when it is opened. The write-ahead log has sums of SQLite's own.
//!
//! Each function that opens a database calls [`begin`] first. Other programs may read such a database, without the right to write: one that
//! writes it without this layer damages it, and closing the last connection writes what is in the log.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use libsqlite3_sys as ffi;
use tracing::error;

/// Bytes at the end of a page that SQLite leaves to this layer: the sum, and as many zeros.
const RESERVED: usize = 8;
const SUM: usize = 4;

/// Where the header of a database says how many bytes it leaves.
const RESERVED_AT: u64 = 20;

/// Of a database, in bytes, at the beginning of the first page. SQLite reads parts of it alone, to learn how large pages are and whether
/// another connection has written; what else stands there it takes from the page.
const HEADER: i64 = 100;

/// Sizes that a page can have.
const SMALLEST: usize = 512;
const LARGEST: usize = 65_536;

/// How many damaged pages are remembered.
const MOST_DAMAGED: usize = 1_000;

/// A page is read so often before it is called damaged, beside a process that may be writing it.
const ATTEMPTS: u32 = 3;

/// SQLite's extended code of a page that is not as it was written.
pub const DAMAGED_PAGE: c_int = ffi::SQLITE_IOERR_DATA;

/// A page of a database that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("page {page} of {} is damaged: its checksum is wrong", .path.file_name().unwrap_or_default().display())]
pub struct DamagedPage {
    /// The database.
    pub path: PathBuf,
    /// Counted from 1.
    pub page: u32,
}

/// Sees to it that databases which this process opens from now on have their sums.
///
/// # Panics
/// When SQLite has no memory left for it, or no layer below it.
pub fn begin() {
    static BEGUN: LazyLock<()> = LazyLock::new(register);
    LazyLock::force(&BEGUN);
}

/// The pages that were found damaged since the process began, up to a thousand.
pub fn damaged() -> Vec<DamagedPage> {
    locked(&DAMAGED).iter().cloned().collect()
}

/// Whether a database with this beginning has sums; a shorter beginning has none.
pub fn has_sums(beginning: &[u8]) -> bool {
    beginning.get(RESERVED_AT as usize).is_some_and(|reserved| usize::from(*reserved) == RESERVED)
}

/// Reads all pages of the database at `path`, also beside a process that has it open, and says which are damaged. `each` is called with
/// how many bytes were read since the last call.
///
/// # Errors
/// When it cannot be read, or is no database with sums.
pub fn verify(path: &Path, mut each: impl FnMut(u64)) -> io::Result<Vec<DamagedPage>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    if length == 0 {
        return Ok(Vec::new());
    }
    let mut beginning = [0; RESERVED_AT as usize + 1];
    file.read_exact_at(&mut beginning, 0)?;
    let size = match u16::from_be_bytes([beginning[16], beginning[17]]) {
        1 => LARGEST,
        size => usize::from(size),
    };
    if !has_sums(&beginning) || !is_page_size(size) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is not a database whose pages have checksums",
        ));
    }
    let mut found = Vec::new();
    let mut bytes = vec![0; size];
    for (offset, page) in (0..length).step_by(size).zip(1..) {
        // SQLite locks this one and never writes it.
        let is_used = !(offset..offset + size as u64).contains(&PENDING_BYTE);
        if is_used
            && !(0..ATTEMPTS)
                .any(|_| file.read_exact_at(&mut bytes, offset).is_ok() && is_whole(page, &bytes))
        {
            found.push(DamagedPage { path: path.to_owned(), page });
        }
        each(size as u64);
    }
    Ok(found)
}

/// The byte by which SQLite locks a database.
const PENDING_BYTE: u64 = 1 << 30;

fn is_page_size(bytes: usize) -> bool {
    bytes.is_power_of_two() && (SMALLEST..=LARGEST).contains(&bytes)
}

/// The number of the page that lies there; `None`: it is a part of one, as SQLite reads of the header alone.
fn page_at(amount: usize, offset: i64) -> Option<u32> {
    let (amount, offset) = (amount as u64, u64::try_from(offset).ok()?);
    let is_page = is_page_size(amount as usize) && offset.is_multiple_of(amount);
    is_page.then(|| u32::try_from(offset / amount + 1).ok()).flatten()
}

fn sum(page: u32, bytes: &[u8]) -> [u8; SUM] {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&page.to_le_bytes());
    sum.update(bytes);
    sum.finalize().to_le_bytes()
}

fn is_whole(page: u32, bytes: &[u8]) -> bool {
    let (summed, reserved) = bytes.split_at(bytes.len() - RESERVED);
    reserved[..SUM] == sum(page, summed) && reserved[SUM..] == [0; RESERVED - SUM]
}

fn with_sum(page: u32, bytes: &[u8]) -> Vec<u8> {
    let summed = &bytes[..bytes.len() - RESERVED];
    [summed, &sum(page, summed), &[0; RESERVED - SUM]].concat()
}

static DAMAGED: Mutex<BTreeSet<DamagedPage>> = Mutex::new(BTreeSet::new());

/// The databases that are open, by the address of SQLite's file.
static OPEN: LazyLock<Mutex<HashMap<usize, PathBuf>>> = LazyLock::new(Mutex::default);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell(file: *mut ffi::sqlite3_file, page: u32) {
    let path = locked(&OPEN).get(&file.addr()).cloned().unwrap_or_default();
    let damaged = DamagedPage { path, page };
    let mut known = locked(&DAMAGED);
    if known.len() < MOST_DAMAGED && known.insert(damaged.clone()) {
        error!(path = %damaged.path.display(), page, "a page is damaged; reads of its data fail");
    }
}

/// SQLite's own layer, and its functions for files of databases with four of them replaced.
struct Below {
    vfs: *mut ffi::sqlite3_vfs,
    open: unsafe extern "C" fn(
        *mut ffi::sqlite3_vfs,
        *const c_char,
        *mut ffi::sqlite3_file,
        c_int,
        *mut c_int,
    ) -> c_int,
    methods: OnceLock<Methods>,
}

struct Methods {
    below: *const ffi::sqlite3_io_methods,
    with_sums: ffi::sqlite3_io_methods,
}

// SAFETY: SQLite's layer and its tables of functions live as long as the process, and it never changes them. The pointers to them are only
// read here, and SQLite calls their functions from any thread.
#[expect(unsafe_code)]
unsafe impl Send for Below {}
// SAFETY: as above.
#[expect(unsafe_code)]
unsafe impl Sync for Below {}
// SAFETY: as above.
#[expect(unsafe_code)]
unsafe impl Send for Methods {}
// SAFETY: as above.
#[expect(unsafe_code)]
unsafe impl Sync for Methods {}

static BELOW: OnceLock<Below> = OnceLock::new();

const NAME: &CStr = c"page-sums";

#[expect(unsafe_code)]
fn register() {
    // SAFETY: it may be called at any time, from any thread; it begins SQLite if need be.
    let below = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
    // SAFETY: it is null or lives as long as the process.
    let layer = unsafe { below.as_ref() }.expect("SQLite has a layer below it");
    let open = layer.xOpen.expect("a layer opens files");
    BELOW.get_or_init(|| Below { vfs: below, open, methods: OnceLock::new() });
    // Its other functions find all that they look at in a copy as well: its data, and the length of a path.
    let layer =
        ffi::sqlite3_vfs { zName: NAME.as_ptr(), pNext: ptr::null_mut(), xOpen: Some(open_file), ..*layer };
    let layer = Box::into_raw(Box::new(layer));
    // SAFETY: the layer is complete and never freed. The function has the type with which SQLite calls it.
    let codes = unsafe { [ffi::sqlite3_vfs_register(layer, 1), ffi::sqlite3_auto_extension(Some(reserve))] };
    assert_eq!(codes, [ffi::SQLITE_OK; 2], "SQLite has memory for a layer");
}

/// Keeps SQLite from reading a part of a page past its cache, which could not be compared.
#[expect(unsafe_code)]
unsafe extern "C" fn characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    let characteristics = below().and_then(|below| below.xDeviceCharacteristics);
    // SAFETY: SQLite passed the file for that function.
    characteristics.map_or(0, |characteristics| unsafe { characteristics(file) })
        & !ffi::SQLITE_IOCAP_SUBPAGE_READ
}

/// Makes new databases leave room for sums.
#[expect(unsafe_code)]
unsafe extern "C" fn reserve(
    connection: *mut ffi::sqlite3,
    _: *mut *mut c_char,
    _: *const ffi::sqlite3_api_routines,
) -> c_int {
    let mut bytes = RESERVED as c_int;
    // SAFETY: SQLite calls this with a connection that it has just opened, and reads and writes one number.
    unsafe {
        ffi::sqlite3_file_control(
            connection,
            ptr::null(),
            ffi::SQLITE_FCNTL_RESERVE_BYTES,
            (&raw mut bytes).cast::<c_void>(),
        )
    }
}

/// Opens a file, and reads and writes it with sums if it is a database.
#[expect(unsafe_code)]
unsafe extern "C" fn open_file(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    opened: *mut c_int,
) -> c_int {
    let Some(below) = BELOW.get() else { return ffi::SQLITE_CANTOPEN };
    // SAFETY: these are the arguments that SQLite passed for that function, whose layer wants as many bytes for a file as this one.
    let code = unsafe { (below.open)(below.vfs, name, file, flags, opened) };
    if code != ffi::SQLITE_OK || flags & ffi::SQLITE_OPEN_MAIN_DB == 0 {
        return code;
    }
    // SAFETY: the file was opened, so it has its functions, which live as long as the process.
    let (own, table) = unsafe { ((*file).pMethods, *(*file).pMethods) };
    let methods = below.methods.get_or_init(|| Methods {
        below: own,
        // Without the functions of version 3 nothing is mapped into memory, past this layer.
        with_sums: ffi::sqlite3_io_methods {
            iVersion: table.iVersion.min(2),
            xClose: Some(close),
            xRead: Some(read),
            xWrite: Some(write),
            xDeviceCharacteristics: Some(characteristics),
            ..table
        },
    });
    if methods.below != own {
        error!("a database is on a file system whose locks SQLite keeps in another way; it cannot be used");
        // SQLite closes the file, as it has functions.
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: the file is open, and SQLite's own function reads it.
    if unsafe { is_without_sums(file, &table) } {
        return ffi::SQLITE_NOTADB;
    }
    if !name.is_null() {
        // SAFETY: SQLite passes the name as text that ends with a zero.
        let name = unsafe { CStr::from_ptr(name) };
        locked(&OPEN).insert(file.addr(), Path::new(std::ffi::OsStr::from_bytes(name.to_bytes())).to_owned());
    }
    // SAFETY: the file is SQLite's own for this call, and the table lives as long as the process.
    unsafe { (*file).pMethods = &raw const methods.with_sums };
    ffi::SQLITE_OK
}

/// Whether it is a database that leaves no room for sums: to write there would destroy it, and a log may have to be written before its
/// first page is read.
///
/// # Safety
/// The file is open, and `table` has its functions.
#[expect(unsafe_code)]
unsafe fn is_without_sums(file: *mut ffi::sqlite3_file, table: &ffi::sqlite3_io_methods) -> bool {
    let mut beginning = [0_u8; RESERVED_AT as usize + 1];
    let Some(read) = table.xRead else { return true };
    // SAFETY: as the caller says; there is room for as many bytes.
    let code = unsafe { read(file, beginning.as_mut_ptr().cast::<c_void>(), beginning.len() as c_int, 0) };
    code == ffi::SQLITE_OK && beginning.starts_with(b"SQLite format 3\0") && !has_sums(&beginning)
}

/// SQLite's own functions for a file with sums.
fn below() -> Option<&'static ffi::sqlite3_io_methods> {
    let methods = BELOW.get()?.methods.get()?;
    // SAFETY: the table lives as long as the process, and SQLite never changes it.
    #[expect(unsafe_code)]
    unsafe {
        methods.below.as_ref()
    }
}

#[expect(unsafe_code)]
unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    let Some(close) = below().and_then(|below| below.xClose) else { return ffi::SQLITE_IOERR_CLOSE };
    locked(&OPEN).remove(&file.addr());
    // SAFETY: SQLite passed the file for that function.
    unsafe { close(file) }
}

#[expect(unsafe_code)]
unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    to: *mut c_void,
    amount: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    let Some(read) = below().and_then(|below| below.xRead) else { return ffi::SQLITE_IOERR_READ };
    // SAFETY: these are the arguments that SQLite passed for that function.
    let code = unsafe { read(file, to, amount, offset) };
    let Some(page) = page_at(amount as usize, offset) else {
        let is_in_header = offset + i64::from(amount) <= HEADER;
        return if is_in_header { code } else { ffi::SQLITE_IOERR_READ };
    };
    // SAFETY: SQLite gave room for so many bytes, and all were written: what lies behind the end of a file is set to zeros.
    let bytes = || unsafe { std::slice::from_raw_parts(to.cast::<u8>(), amount as usize) };
    let is_right = match code {
        ffi::SQLITE_OK => is_whole(page, bytes()),
        // A database in which nothing was written yet.
        ffi::SQLITE_IOERR_SHORT_READ => page == 1 && bytes().iter().all(|byte| *byte == 0),
        _ => true,
    };
    if !is_right {
        tell(file, page);
        return DAMAGED_PAGE;
    }
    code
}

#[expect(unsafe_code)]
unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    amount: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    let Some(write) = below().and_then(|below| below.xWrite) else { return ffi::SQLITE_IOERR_WRITE };
    let Some(page) = page_at(amount as usize, offset) else {
        // SQLite writes whole pages.
        return ffi::SQLITE_IOERR_WRITE;
    };
    // SAFETY: SQLite passes so many bytes.
    let bytes = with_sum(page, unsafe { std::slice::from_raw_parts(from.cast::<u8>(), amount as usize) });
    // SAFETY: as above, from bytes that live until it returns.
    unsafe { write(file, bytes.as_ptr().cast::<c_void>(), amount, offset) }
}

#[cfg(test)]
mod tests;
