/*
 * A disk that forgets. Preloaded (LD_PRELOAD) into the server, it lets every file operation through and keeps,
 * beside the real directory, what a disk would still hold after a power cut at this moment.
 *
 *   POWER_CUT_ROOT    the directory to watch; exists when the process starts
 *   POWER_CUT_SHADOW  an empty directory elsewhere on the same file system; "tree" in it is what survives
 *   POWER_CUT_LIE     optional: from the moment this path exists, fsync and fdatasync report success and do nothing
 *
 * The rules are as strict as POSIX allows a file system to be:
 *   - written bytes, truncations and sizes survive from the fsync or fdatasync of their file on, not before;
 *   - names (creation, rename, unlink) survive from the fsync of their directory on, not before;
 *   - what existed before the process started has survived;
 *   - a sync that is interrupted by SIGKILL may have done a part of its work, as on a real disk.
 * Two simplifications: a directory survives with the first thing in it that does, and SQLite's "-shm" files, which
 * are memory that happens to have a name, never do.
 *
 * Files are told apart by inode: shadow/inodes holds the durable content of each, shadow/tree hard links to these
 * under the durable names. One lock covers everything, so a sync sees no write half-way. What the shim cannot follow
 * (shared writable mappings, O_SYNC, copy_file_range) ends the process with a message: a test must not pass because
 * of it. Operations are carried out by system calls, so no hook can call another.
 */
#define _GNU_SOURCE
/* The plain and the 64-bit name of a function are both defined below; a header that renames one would collide. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8, "made for 64-bit systems, where off_t and off64_t are the same");

struct range {
    off_t from, to;
};

/* What has happened to a file since it was last synced. */
struct file {
    dev_t dev;
    ino_t ino;
    unsigned id;     /* its name under shadow/inodes; inode numbers are used again, ids are not */
    off_t cut;       /* the smallest size it was cut to since then, or -1 */
    struct range *written;
    size_t count, room;
    struct file *next;
};

static char root[PATH_MAX], shadow[PATH_MAX];
static const char *lie;
static struct file *files[1024];
static unsigned last_id;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void die(const char *what, const char *about) {
    dprintf(2, "power_cut shim: %s: %s (%s)\n", what, about, strerror(errno));
    _exit(99);
}

static void must(int ok, const char *what, const char *about) {
    if (!ok) die(what, about);
}

/* snprintf that never cuts a path short. */
static void join(char *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(out, PATH_MAX, format, args);
    va_end(args);
    must(length < PATH_MAX, "path too long", out);
}

static int is_volatile(const char *path) {
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, "-shm") == 0;
}

/* The path of `path` below the root ("" for the root itself), or NULL when it lies elsewhere. */
static const char *below_root(const char *path) {
    size_t length = strlen(root);
    if (length == 0 || strncmp(path, root, length) != 0) return NULL;
    if (path[length] == 0) return path + length;
    return path[length] == '/' ? path + length + 1 : NULL;
}

static const char *path_of(int fd, char *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, out, PATH_MAX - 1);
    if (length < 0) return NULL;
    out[length] = 0;
    return out;
}

static struct file *find(const struct stat *st) {
    for (struct file *f = files[st->st_ino % 1024]; f; f = f->next)
        if (f->ino == st->st_ino && f->dev == st->st_dev) return f;
    return NULL;
}

/* Starts to follow a file that is new, in place of an earlier one that had the same inode number. */
static struct file *follow(const struct stat *st) {
    struct file *f = find(st);
    if (!f) {
        must((f = calloc(1, sizeof *f)) != NULL, "memory", "calloc");
        f->dev = st->st_dev;
        f->ino = st->st_ino;
        f->next = files[st->st_ino % 1024];
        files[st->st_ino % 1024] = f;
    }
    f->id = ++last_id;
    f->cut = -1;
    f->count = 0;
    char inode[PATH_MAX];
    join(inode, "%s/inodes/%u", shadow, f->id);
    int fd = syscall(SYS_openat, AT_FDCWD, inode, O_WRONLY | O_CREAT | O_EXCL, 0600);
    must(fd >= 0, "create", inode);
    close(fd);
    return f;
}

/* Another file has the inode number now. */
static void forget(const struct stat *st) {
    struct file *f = find(st), **at = &files[st->st_ino % 1024];
    if (!f) return;
    while (*at != f) at = &(*at)->next;
    *at = f->next;
    free(f->written);
    free(f);
}

static void dirty(struct file *f, off_t from, off_t length) {
    off_t to = from + length;
    struct range *last = f->count ? &f->written[f->count - 1] : NULL;
    if (last && from >= last->from && from <= last->to) {
        if (to > last->to) last->to = to;
        return;
    }
    if (f->count == f->room) {
        f->room = f->room ? 2 * f->room : 64;
        must((f->written = realloc(f->written, f->room * sizeof *f->written)) != NULL, "memory", "realloc");
    }
    f->written[f->count++] = (struct range){from, to};
}

static void was_cut(struct file *f, off_t size) {
    if (f->cut < 0 || size < f->cut) f->cut = size;
}

static void copy(int from, int to, struct range part) {
    static char buffer[1 << 16]; /* under the lock */
    while (part.from < part.to) {
        size_t want = part.to - part.from;
        if (want > sizeof buffer) want = sizeof buffer;
        ssize_t got = syscall(SYS_pread64, from, buffer, want, part.from);
        must(got >= 0, "read back", "a watched file");
        if (got == 0) return; /* cut off again since it was written */
        must(syscall(SYS_pwrite64, to, buffer, got, part.from) == got, "write", "the shadow");
        part.from += got;
    }
}

/* Makes durable what was done to the file up to now. */
static void keep_file(int fd, struct file *f) {
    char own[64], inode[PATH_MAX];
    struct stat st;
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd); /* `fd` itself may be open for writing only */
    join(inode, "%s/inodes/%u", shadow, f->id);
    int from = syscall(SYS_openat, AT_FDCWD, own, O_RDONLY | O_CLOEXEC);
    int to = syscall(SYS_openat, AT_FDCWD, inode, O_WRONLY | O_CLOEXEC);
    must(from >= 0 && to >= 0 && fstat(from, &st) == 0, "open", inode);
    if (f->cut >= 0) must(syscall(SYS_ftruncate, to, f->cut) == 0, "truncate", inode);
    for (size_t i = 0; i < f->count; i++) copy(from, to, f->written[i]);
    must(syscall(SYS_ftruncate, to, st.st_size) == 0, "truncate", inode);
    close(from);
    close(to);
    f->cut = -1;
    f->count = 0;
}

/* Makes every directory of `path` down to its last slash. */
static void make_parents(const char *path) {
    char part[PATH_MAX];
    join(part, "%s", path);
    for (char *slash = part + strlen(shadow) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        must(mkdir(part, 0700) == 0 || errno == EEXIST, "mkdir", part);
    }
}

/* Gives the file the durable name `name`, in place of whatever had it. */
static void keep_name(const char *name, const struct file *f) {
    char inode[PATH_MAX], fresh[PATH_MAX];
    struct stat now, then;
    join(inode, "%s/inodes/%u", shadow, f->id);
    must(stat(inode, &now) == 0, "stat", inode);
    if (lstat(name, &then) == 0 && then.st_ino == now.st_ino) return;
    join(fresh, "%s/fresh", shadow);
    unlink(fresh);
    must(link(inode, fresh) == 0 && rename(fresh, name) == 0, "link", name);
}

/* Makes the names in a directory what they are now. */
static void keep_names(const char *path) {
    char dir[PATH_MAX], real[PATH_MAX], kept[PATH_MAX];
    const char *below = below_root(path);
    struct dirent *entry;
    struct stat st;
    join(dir, "%s/tree/%s%s", shadow, below, *below ? "/" : "");
    make_parents(dir);
    DIR *names = opendir(path);
    must(names != NULL, "opendir", path);
    while ((entry = readdir(names))) {
        join(real, "%s/%s", path, entry->d_name);
        join(kept, "%s%s", dir, entry->d_name);
        if (is_volatile(real) || lstat(real, &st) != 0 || !S_ISREG(st.st_mode)) continue;
        struct file *f = find(&st);
        must(f != NULL, "a file was made behind the shim's back", real);
        keep_name(kept, f);
    }
    closedir(names);
    must((names = opendir(dir)) != NULL, "opendir", dir);
    while ((entry = readdir(names))) {
        join(real, "%s/%s", path, entry->d_name);
        join(kept, "%s%s", dir, entry->d_name);
        if (lstat(kept, &st) == 0 && S_ISREG(st.st_mode) && access(real, F_OK) != 0) unlink(kept);
    }
    closedir(names);
}

/* Follows everything that is there before the process begins: it has survived. */
static void adopt(const char *path) {
    DIR *names = opendir(path);
    must(names != NULL, "opendir", path);
    for (struct dirent *entry; (entry = readdir(names));) {
        char inner[PATH_MAX];
        struct stat st;
        join(inner, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] == '.' && (!entry->d_name[1] || !strcmp(entry->d_name, ".."))) continue;
        must(lstat(inner, &st) == 0, "stat", inner);
        if (S_ISDIR(st.st_mode)) adopt(inner);
        if (!S_ISREG(st.st_mode) || is_volatile(inner)) continue;
        int fd = syscall(SYS_openat, AT_FDCWD, inner, O_RDONLY | O_CLOEXEC);
        must(fd >= 0, "open", inner);
        struct file *f = follow(&st);
        dirty(f, 0, st.st_size);
        keep_file(fd, f);
        close(fd);
    }
    closedir(names);
    keep_names(path);
}

__attribute__((constructor)) static void begin(void) {
    const char *watched = getenv("POWER_CUT_ROOT"), *beside = getenv("POWER_CUT_SHADOW");
    if (!watched || !beside) return;
    char path[PATH_MAX];
    must(realpath(beside, shadow) != NULL, "the shadow directory", beside);
    lie = getenv("POWER_CUT_LIE");
    join(path, "%s/inodes", shadow);
    must(mkdir(path, 0700) == 0, "mkdir", path);
    must(realpath(watched, root) != NULL, "the watched directory", watched);
    adopt(root);
}

/* The watched file behind `fd`, with the lock taken; NULL, and no lock, when it is none. */
static struct file *watched(int fd) {
    struct stat st;
    int saved = errno;
    if (!root[0] || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        errno = saved;
        return NULL;
    }
    pthread_mutex_lock(&lock);
    struct file *f = find(&st);
    if (!f) pthread_mutex_unlock(&lock);
    errno = saved;
    return f;
}

static long done(long result) {
    pthread_mutex_unlock(&lock);
    return result;
}

static int do_open(int at, const char *path, int flags, mode_t mode) {
    char full[PATH_MAX];
    struct stat st;
    if (!root[0]) return syscall(SYS_openat, at, path, flags, mode);
    pthread_mutex_lock(&lock);
    int saved = errno, existed = fstatat(at, path, &st, 0) == 0;
    errno = saved;
    int fd = syscall(SYS_openat, at, path, flags, mode);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return done(fd);
    if (!path_of(fd, full) || !below_root(full) || is_volatile(full)) {
        forget(&st);
        return done(fd);
    }
    if (flags & O_DSYNC) die("cannot follow O_SYNC and O_DSYNC", full);
    struct file *f = existed ? find(&st) : follow(&st);
    must(f != NULL, "a file was made behind the shim's back", full);
    if (flags & O_TRUNC) was_cut(f, 0);
    return done(fd);
}

#define OPEN(name)                                                  \
    int name(const char *path, int flags, ...) {                    \
        va_list args;                                               \
        va_start(args, flags);                                      \
        mode_t mode = va_arg(args, mode_t);                         \
        va_end(args);                                               \
        return do_open(AT_FDCWD, path, flags, mode);                \
    }
#define OPENAT(name)                                                \
    int name(int at, const char *path, int flags, ...) {            \
        va_list args;                                               \
        va_start(args, flags);                                      \
        mode_t mode = va_arg(args, mode_t);                         \
        va_end(args);                                               \
        return do_open(at, path, flags, mode);                      \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
int __open_2(const char *path, int flags) { return do_open(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return do_open(AT_FDCWD, path, flags, 0); }
int creat(const char *path, mode_t mode) { return do_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

/* After a write at the file's own position, also with O_APPEND, the position is the end of what was written. */
static ssize_t wrote_here(struct file *f, int fd, ssize_t n) {
    if (n > 0) dirty(f, lseek(fd, 0, SEEK_CUR) - n, n);
    return done(n);
}

static ssize_t wrote_at(struct file *f, off_t at, ssize_t n) {
    if (n > 0) dirty(f, at, n);
    return done(n);
}

ssize_t write(int fd, const void *data, size_t size) {
    struct file *f = watched(fd);
    ssize_t n = syscall(SYS_write, fd, data, size);
    return f ? wrote_here(f, fd, n) : n;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    struct file *f = watched(fd);
    ssize_t n = syscall(SYS_writev, fd, parts, count);
    return f ? wrote_here(f, fd, n) : n;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    struct file *f = watched(fd);
    ssize_t n = syscall(SYS_pwrite64, fd, data, size, at);
    return f ? wrote_at(f, at, n) : n;
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    struct file *f = watched(fd);
    ssize_t n = syscall(SYS_pwritev, fd, parts, count, at, 0L);
    return f ? wrote_at(f, at, n) : n;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) { return pwrite(fd, data, size, at); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at) { return pwritev(fd, parts, count, at); }

int ftruncate(int fd, off_t size) {
    struct file *f = watched(fd);
    int result = syscall(SYS_ftruncate, fd, size);
    if (f && result == 0) was_cut(f, size);
    return f ? done(result) : result;
}

int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }

int fallocate(int fd, int mode, off_t at, off_t size) {
    struct file *f = watched(fd);
    int result = syscall(SYS_fallocate, fd, mode, at, size);
    if (f && result == 0 && mode) dirty(f, at, size); /* holes and zeroes; without a mode only the size changes */
    return f ? done(result) : result;
}

int fallocate64(int fd, int mode, off_t at, off_t size) { return fallocate(fd, mode, at, size); }
int posix_fallocate(int fd, off_t at, off_t size) { return fallocate(fd, 0, at, size) == 0 ? 0 : errno; }
int posix_fallocate64(int fd, off_t at, off_t size) { return posix_fallocate(fd, at, size); }

static int sync_with(long call, int fd) {
    char path[PATH_MAX];
    struct stat st;
    struct file *f = watched(fd);
    int is_lie = root[0] && lie && access(lie, F_OK) == 0;
    if (f && is_lie) return done(0);
    int result = syscall(call, fd);
    if (f) {
        if (result == 0) keep_file(fd, f);
        return done(result);
    }
    if (root[0] && !is_lie && result == 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)
        && path_of(fd, path) && below_root(path)) {
        pthread_mutex_lock(&lock);
        keep_names(path);
        pthread_mutex_unlock(&lock);
    }
    return result;
}

int fsync(int fd) { return sync_with(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_with(SYS_fdatasync, fd); }

/* What would change a watched file unseen. */
static void refuse(int fd, const char *what) {
    char path[PATH_MAX] = "?";
    if (watched(fd)) die(what, path_of(fd, path) ? path : "?");
}

void *mmap(void *addr, size_t length, int protection, int flags, int fd, off_t at) {
    if (fd >= 0 && (flags & MAP_SHARED) && (protection & PROT_WRITE)) refuse(fd, "cannot follow a shared writable mapping");
    return (void *)syscall(SYS_mmap, addr, length, protection, flags, fd, at);
}

void *mmap64(void *addr, size_t length, int protection, int flags, int fd, off_t at) {
    return mmap(addr, length, protection, flags, fd, at);
}

ssize_t copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t size, unsigned flags) {
    refuse(out, "cannot follow copy_file_range");
    return syscall(SYS_copy_file_range, in, in_at, out, out_at, size, flags);
}

ssize_t sendfile(int out, int in, off_t *at, size_t size) {
    refuse(out, "cannot follow sendfile");
    return syscall(SYS_sendfile, out, in, at, size);
}

ssize_t sendfile64(int out, int in, off_t *at, size_t size) { return sendfile(out, in, at, size); }
