/* The runtime library of an Ascend card (libascendcl.so) on a machine without one.

   torch_npu calls it as it calls CANN's: device memory is memory of the host, a stream does at once what it is given,
   an event is a time of the clock. What an operator is called with (tensors, scalars, lists) is kept in records, and
   each operator hands all its arguments to one function of Python, which computes on the CPU (npu_card/calls.py).
   Names, arguments and error codes are those of CANN's public C interface (acl.h, acl_rt.h, aclnn_base.h). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
enum {
  SUCCESS = 0,
  INVALID_DEVICE = 107001,  /* ACL_ERROR_RT_INVALID_DEVICEID */
  CONTEXT_NULL = 107002,    /* ACL_ERROR_RT_CONTEXT_NULL */
  NOT_SUPPORTED = 207000,   /* ACL_ERROR_RT_FEATURE_NOT_SUPPORT */
  OUT_OF_MEMORY = 207001,   /* ACL_ERROR_RT_MEMORY_ALLOCATION */
  HOST_TOO_SMALL = 507899,  /* ACL_ERROR_RT_DRV_INTERNAL_ERROR: no lack of memory of the card */
};

/* ---- what Python sets, and the text of the last error ---- */
enum { MAX_DEVICES = 64 };
static struct { int devices; uint64_t memory; int64_t cores; char soc[64]; } card = {1, 64ull << 30, 24, "Ascend910B2"};
static __thread char message[8192];

API void card_setup(int devices, const char *soc, uint64_t memory, int64_t cores) {
  card.devices = devices < MAX_DEVICES ? devices : MAX_DEVICES;
  card.memory = memory;
  card.cores = cores;
  snprintf(card.soc, sizeof card.soc, "%s", soc);
}
API void card_message(const char *text) { snprintf(message, sizeof message, "%s", text); }
API const char *aclGetRecentErrMsg(void) { return message; }

/* ---- devices ---- */
static __thread int device = -1;
static bool used, forked;
static uint64_t copies;
static void after_fork(void) { forked = used, copies = 0; }
static int refuse_fork(void) {
  card_message("the device cannot be used in a process that was forked after its parent had used it: start workers "
               "that touch the device with the 'spawn' method");
  return CONTEXT_NULL;
}
/* As the driver of a card counts ASCEND_RT_VISIBLE_DEVICES: what follows a wrong number is hidden. */
static int visible(void) {
  const char *text = getenv("ASCEND_RT_VISIBLE_DEVICES");
  if (!text) return card.devices;
  int shown = 0;
  for (char *end; ; text = end + 1, shown++) {
    long number = strtol(text, &end, 10);
    if (end == text || number < 0 || number >= card.devices) return shown;
    if (*end != ',') return shown + 1;
  }
}
API int aclInit(const char *config) { static bool asked; if (!asked) pthread_atfork(NULL, NULL, after_fork); asked = true; return SUCCESS; }
API int aclFinalize(void) { return SUCCESS; }
API int aclrtGetDeviceCount(uint32_t *count) { *count = visible(); return SUCCESS; }
API int aclrtGetDevice(int32_t *now) { if (device < 0) return CONTEXT_NULL; *now = device; return SUCCESS; }
API int aclrtSetDevice(int32_t wanted) {
  if (forked) return refuse_fork();
  if (wanted < 0 || wanted >= visible()) { card_message("Invalid device ID"); return INVALID_DEVICE; }
  used = true;
  device = wanted;
  return SUCCESS;
}
API int aclrtResetDevice(int32_t which) { return SUCCESS; }
API int aclrtGetCurrentContext(void **context) { *context = (void *)(uintptr_t)(0x1000 + device); return SUCCESS; }
API int aclrtSetCurrentContext(void *context) { device = (int)((uintptr_t)context - 0x1000); return SUCCESS; }
API int aclrtGetPrimaryCtxState(int32_t which, uint32_t *flags, int32_t *active) { *active = used; return SUCCESS; }
API int aclrtDeviceCanAccessPeer(int32_t *can, int32_t from, int32_t to) { *can = from != to; return SUCCESS; }
API int aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags) { return SUCCESS; }
API const char *aclrtGetSocName(void) { return card.soc; }
enum { L2_SIZE = 2, GLOBAL_MEMORY = 301, L2_CACHE = 302 };  /* what else is asked for are numbers of cores */
static const int64_t l2 = 192ll << 20;
API int aclGetDeviceCapability(uint32_t which, int kind, int64_t *value) { *value = kind == L2_SIZE ? l2 : card.cores; return SUCCESS; }
API int aclrtGetDeviceInfo(uint32_t which, int kind, int64_t *value) {
  *value = kind == GLOBAL_MEMORY ? (int64_t)card.memory : kind == L2_CACHE ? l2 : card.cores;
  return SUCCESS;
}
/* Fewer cores for a program, or for a stream: kept, and without effect. */
static uint32_t cores_allowed[2];
static uint32_t cores_of(uint32_t allowed) { return allowed ? allowed : (uint32_t)card.cores; }
API int aclrtSetDeviceResLimit(int32_t which, int kind, uint32_t value) { cores_allowed[kind & 1] = value; return SUCCESS; }
API int aclrtResetDeviceResLimit(int32_t which) { cores_allowed[0] = cores_allowed[1] = 0; return SUCCESS; }
API int aclrtGetDeviceResLimit(int32_t which, int kind, uint32_t *value) { *value = cores_of(cores_allowed[kind & 1]); return SUCCESS; }
API int aclrtGetResInCurrentThread(int kind, uint32_t *value) { *value = (uint32_t)card.cores; return SUCCESS; }
API int aclrtGetDeviceUtilizationRate(int32_t which, void *rate) { memset(rate, 0, 16); return SUCCESS; }
/* The CANN that we claim to be; 7 asks for the driver's version. */
typedef struct { char version[128], major[64], minor[64], release[64], patch[64], reserved[128]; } cann_version;
API int aclsysGetCANNVersion(int of, cann_version *found) {
  memset(found, 0, sizeof *found);
  strcpy(found->version, of == 7 ? "25.5.0" : "9.0.0");
  strcpy(found->major, "9"), strcpy(found->minor, "0"), strcpy(found->release, "0");
  return SUCCESS;
}
API int aclsysGetVersionStr(char *package, char *version) { strcpy(version, "9.0.0"); return SUCCESS; }

/* ---- what a stream is given is done when the call returns, but for what other ranks have a part in ----
   A collective is over when they have come to it. It has a ticket, which its stream and the events recorded behind it
   keep; whoever wants its result waits here for the ticket (npu_card/collectives.py ends it). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
enum { TICKETS = 1 << 12 };
typedef struct { int32_t number; int64_t ticket; uint32_t cores[2]; } queue;
static int32_t streams;
static queue none;
static struct { int64_t ticket; bool writes; } open_tickets[TICKETS];
static int64_t tickets;
static int unfinished;
static int (*await)(int64_t);
static queue *queue_of(void *stream) { return stream ? stream : &none; }
API void card_await(int (*function)(int64_t)) { await = function; }
/* A collective begins on a stream; `writes`: it changes memory of this process. */
API int64_t card_begin(void *stream, bool writes) {
  pthread_mutex_lock(&lock);
  int64_t ticket = ++tickets;
  unfinished += !open_tickets[ticket % TICKETS].ticket;
  open_tickets[ticket % TICKETS].ticket = ticket, open_tickets[ticket % TICKETS].writes = writes;
  queue_of(stream)->ticket = ticket;
  pthread_mutex_unlock(&lock);
  return ticket;
}
API void card_end(int64_t ticket) {
  pthread_mutex_lock(&lock);
  if (open_tickets[ticket % TICKETS].ticket == ticket) open_tickets[ticket % TICKETS].ticket = 0, unfinished--;
  pthread_mutex_unlock(&lock);
}
static bool is_open(int64_t ticket) { return ticket && open_tickets[ticket % TICKETS].ticket == ticket; }
static int wait_for(int64_t ticket) { return is_open(ticket) ? await(ticket) : SUCCESS; }
/* Before anything reads or writes memory: what other ranks still write. `all`: also what only they read. */
static int wait_for_writers(bool all) {
  int code = SUCCESS;
  for (int slot = 0; unfinished && slot < TICKETS && !code; slot++)
    if (open_tickets[slot].ticket && (all || open_tickets[slot].writes)) code = await(open_tickets[slot].ticket);
  return code;
}

/* ---- memory: pages of the host, taken when they are first written ---- */
typedef struct block { struct block *next; char *start; uint64_t size; int device, file; } block;  /* file: 0 where it is in none */
static block *blocks;
static uint64_t held[MAX_DEVICES];

static void *pages(uint64_t size, int access) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (access ? 0 : MAP_NORESERVE);  /* more than the host has is refused at once */
  void *start = mmap(NULL, size, access, flags, -1, 0);
  return start == MAP_FAILED ? NULL : start;
}
static int take(uint64_t size, int on) {
  if (held[on] + size > card.memory) { card_message("out of device memory"); return OUT_OF_MEMORY; }
  held[on] += size;
  return SUCCESS;
}
API int aclrtMalloc(void **start, size_t wanted, int policy) {
  if (forked) return refuse_fork();
  int on = device < 0 ? 0 : device;
  uint64_t size = (wanted + 32 + 4095) & ~4095ull;
  block *made = malloc(sizeof *made);
  pthread_mutex_lock(&lock);
  int code = take(size, on);
  char *memory = code ? NULL : pages(size, PROT_READ | PROT_WRITE);
  if (memory) {
    *made = (block){blocks, memory, size, on};
    blocks = made;
  } else if (!code) {
    held[on] -= size;
    snprintf(message, sizeof message, "HostTooSmall: this machine has no %.1f GiB left for the emulated card, whose "
             "memory is the host's: this says nothing of the program; run it with smaller sizes, or on a machine with "
             "more memory", size / (double)(1 << 30));
    code = HOST_TOO_SMALL;
  }
  pthread_mutex_unlock(&lock);
  if (code) free(made); else *start = memory;
  return code;
}
API int aclrtMallocAlign32(void **start, size_t wanted, int policy) { return aclrtMalloc(start, wanted, policy); }
API int aclrtFree(void *start) {
  pthread_mutex_lock(&lock);
  for (block **at = &blocks; *at; at = &(*at)->next)
    if ((*at)->start == start) {
      block *gone = *at;
      *at = gone->next;
      held[gone->device] -= gone->size;
      munmap(gone->start, gone->size);
      if (gone->file) close(gone->file);
      free(gone);
      break;
    }
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}
API int aclrtGetMemInfo(int kind, size_t *left, size_t *total) {
  int on = device < 0 ? 0 : device;
  *total = card.memory;
  *left = card.memory - held[on];
  return SUCCESS;
}
/* By the modules of CANN, of which none is here. */
API int aclrtGetMemUsageInfo(int on, void *modules, size_t room, size_t *count) { *count = 0; return SUCCESS; }
/* Memory for other processes: the block moves to a file that its key names, with the process that has it open. */
typedef struct imported { struct imported *next; char key[64], *start; uint64_t size; } imported;
static imported *imports;
static int refuse_key(const char *text) { card_message(text); return NOT_SUPPORTED; }
static bool into_file(block *at) {
  int file = memfd_create("npu", MFD_CLOEXEC);
  if (file <= 0 || ftruncate(file, at->size)) return false;
  for (uint64_t done = 0; done < at->size; ) {
    ssize_t written = write(file, at->start + done, at->size - done);
    if (written <= 0) { close(file); return false; }
    done += written;
  }
  at->file = file;
  return mmap(at->start, at->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
}
API int aclrtIpcMemGetExportKey(void *start, size_t size, char *key, size_t room, uint64_t flags) {
  pthread_mutex_lock(&lock);
  block *at = blocks;
  while (at && at->start != start) at = at->next;
  bool shared = at && (at->file || into_file(at));
  if (shared) snprintf(key, room, "%d/%d/%llu", getpid(), at->file, (unsigned long long)at->size);
  pthread_mutex_unlock(&lock);
  return shared ? SUCCESS : refuse_key(at ? "this machine has no memory left for a file of the emulated card's"
                                          : "memory of expandable segments is not shared between processes");
}
API int aclrtIpcMemSetImportPid(const char *key, int32_t *processes, size_t count) { return SUCCESS; }
API int aclrtIpcMemImportByKey(void **start, const char *key, uint64_t flags) {
  int process, file;
  unsigned long long size;
  char path[64];
  if (forked) return refuse_fork();
  if (sscanf(key, "%d/%d/%llu", &process, &file, &size) != 3) return refuse_key("this is no key of memory");
  snprintf(path, sizeof path, "/proc/%d/fd/%d", process, file);
  int opened = open(path, O_RDWR | O_CLOEXEC);
  void *memory = opened < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
  if (opened >= 0) close(opened);
  if (memory == MAP_FAILED) return refuse_key("the process that shares this memory has ended");
  imported *made = malloc(sizeof *made);
  pthread_mutex_lock(&lock);
  *made = (imported){imports, "", memory, size};
  snprintf(made->key, sizeof made->key, "%s", key);
  imports = made;
  pthread_mutex_unlock(&lock);
  *start = memory;
  return SUCCESS;
}
API int aclrtIpcMemClose(const char *key) {
  pthread_mutex_lock(&lock);
  for (imported **at = &imports; *at; at = &(*at)->next)
    if (!strcmp((*at)->key, key)) {
      imported *gone = *at;
      *at = gone->next;
      munmap(gone->start, gone->size);
      free(gone);
      break;
    }
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}
API int aclrtDeviceGetBareTgid(int32_t *process) { *process = getpid(); return SUCCESS; }
/* Expandable segments: addresses first, memory of the card later. A handle is the size that it stands for. */
API int aclrtReserveMemAddress(void **start, size_t size, size_t align, void *at, uint64_t flags) {
  return (*start = pages(size, PROT_NONE)) ? SUCCESS : OUT_OF_MEMORY;
}
API int aclrtReleaseMemAddress(void *start) { return SUCCESS; }
typedef struct { uint64_t size; int device; } physical;
API int aclrtMallocPhysical(void **handle, size_t size, const void *properties, uint64_t flags) {
  int on = device < 0 ? 0 : device;
  if (forked) return refuse_fork();
  pthread_mutex_lock(&lock);
  int code = take(size, on);
  pthread_mutex_unlock(&lock);
  if (!code) { physical *made = malloc(sizeof *made); *made = (physical){size, on}; *handle = made; }
  return code;
}
API int aclrtFreePhysical(physical *handle) {
  pthread_mutex_lock(&lock);
  held[handle->device] -= handle->size;
  pthread_mutex_unlock(&lock);
  free(handle);
  return SUCCESS;
}
static struct { char *start; uint64_t size; } mapped[1 << 16];
API int aclrtMapMem(void *start, size_t size, size_t offset, void *handle, uint64_t flags) {
  if (mprotect(start, size, PROT_READ | PROT_WRITE)) return OUT_OF_MEMORY;
  pthread_mutex_lock(&lock);
  size_t slot = 0;
  while (slot < sizeof mapped / sizeof *mapped && mapped[slot].start) slot++;
  if (slot < sizeof mapped / sizeof *mapped) mapped[slot].start = start, mapped[slot].size = size;
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}
API int aclrtUnmapMem(void *start) {
  pthread_mutex_lock(&lock);
  for (size_t slot = 0; slot < sizeof mapped / sizeof *mapped; slot++)
    if (mapped[slot].start == start) {
      madvise(start, mapped[slot].size, MADV_DONTNEED);
      mprotect(start, mapped[slot].size, PROT_NONE);
      mapped[slot].start = NULL;
      break;
    }
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}
API int aclrtMallocHost(void **start, size_t size) { return posix_memalign(start, 4096, size ? size : 1) ? OUT_OF_MEMORY : SUCCESS; }
API int aclrtFreeHost(void *start) { free(start); return SUCCESS; }
API uint64_t card_copies(void) { return copies; }
API int aclrtMemcpy(void *to, size_t most, const void *from, size_t size, int kind) {
  copies++;
  int code = forked ? refuse_fork() : unfinished ? wait_for_writers(false) : SUCCESS;
  if (!code) memmove(to, from, size);
  return code;
}
API int aclrtMemcpyAsync(void *to, size_t most, const void *from, size_t size, int kind, void *stream) { return aclrtMemcpy(to, most, from, size, kind); }
API int aclrtMemset(void *to, size_t most, int32_t value, size_t size) {
  int code = unfinished ? wait_for_writers(false) : SUCCESS;
  if (!code) memset(to, value, size);
  return code;
}
API int aclrtMemsetAsync(void *to, size_t most, int32_t value, size_t size, void *stream) { return aclrtMemset(to, most, value, size); }

/* ---- streams and events ---- */
API int aclrtCreateStreamWithConfig(void **stream, uint32_t priority, uint32_t flags) {
  queue *made = malloc(sizeof *made);
  *made = (queue){streams++, 0};
  *stream = made;
  return SUCCESS;
}
API int aclrtCreateStream(void **stream) { return aclrtCreateStreamWithConfig(stream, 0, 0); }
API int aclrtDestroyStream(void *stream) { return SUCCESS; }
API int aclrtDestroyStreamForce(void *stream) { return SUCCESS; }
API int aclrtSynchronizeStream(void *stream) { return wait_for(queue_of(stream)->ticket); }
API int aclrtSynchronizeStreamWithTimeout(void *stream, int32_t time) { return aclrtSynchronizeStream(stream); }
API int aclrtSynchronizeDevice(void) { return wait_for_writers(true); }
API int aclrtSynchronizeDeviceWithTimeout(int32_t time) { return aclrtSynchronizeDevice(); }
API int aclrtStreamQuery(void *stream, int *status) { *status = is_open(queue_of(stream)->ticket); return SUCCESS; }
API int aclrtStreamGetId(void *stream, int32_t *number) { *number = queue_of(stream)->number; return SUCCESS; }
API int aclrtSetStreamResLimit(void *stream, int kind, uint32_t value) { queue_of(stream)->cores[kind & 1] = value; return SUCCESS; }
API int aclrtGetStreamResLimit(void *stream, int kind, uint32_t *value) {
  *value = cores_of(queue_of(stream)->cores[kind & 1]);
  return SUCCESS;
}
API int aclrtResetStreamResLimit(void *stream) { memset(queue_of(stream)->cores, 0, sizeof none.cores); return SUCCESS; }
API int aclrtUseStreamResInCurrentThread(void *stream) { return SUCCESS; }
API int aclrtUnuseStreamResInCurrentThread(void *stream) { return SUCCESS; }
API int aclrtSetStreamFailureMode(void *stream, uint64_t mode) { return SUCCESS; }
API int aclrtSetStreamAttribute(void *stream, int attribute, void *value) { return SUCCESS; }
static uint32_t overflow;
API int aclrtSetStreamOverflowSwitch(void *stream, uint32_t on) { overflow = on; return SUCCESS; }
API int aclrtGetStreamOverflowSwitch(void *stream, uint32_t *on) { *on = overflow; return SUCCESS; }
API int aclrtSetDeviceSatMode(int mode) { return SUCCESS; }
API int aclrtSetOpWaitTimeout(uint32_t seconds) { return SUCCESS; }
API int aclrtSetOpExecuteTimeOut(uint32_t seconds) { return SUCCESS; }
API int aclrtLaunchCallback(void (*function)(void *), void *data, int block, void *stream) { function(data); return SUCCESS; }
API int aclrtLaunchHostFunc(void *stream, void (*function)(void *), void *data) { function(data); return SUCCESS; }
API int aclrtProcessReport(int32_t time) { return 1; }
API int aclrtSubscribeReport(uint64_t thread, void *stream) { return SUCCESS; }
API int aclrtUnSubscribeReport(uint64_t thread, void *stream) { return SUCCESS; }

typedef struct { double milliseconds; int64_t ticket; } event;
API int aclrtCreateEventExWithFlag(void **made, uint32_t flags) { *made = calloc(1, sizeof(event)); return SUCCESS; }
API int aclrtCreateEventWithFlag(void **made, uint32_t flags) { return aclrtCreateEventExWithFlag(made, flags); }
API int aclrtDestroyEvent(void *gone) { free(gone); return SUCCESS; }
API int aclrtRecordEvent(event *at, void *stream) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *at = (event){now.tv_sec * 1e3 + now.tv_nsec / 1e6, queue_of(stream)->ticket};
  return SUCCESS;
}
API int aclrtResetEvent(void *which, void *stream) { return SUCCESS; }
API int aclrtStreamWaitEvent(void *stream, event *which) { return wait_for(which->ticket); }
API int aclrtSynchronizeEvent(event *which) { return wait_for(which->ticket); }
API int aclrtQueryEventStatus(event *which, int *status) { *status = !is_open(which->ticket); return SUCCESS; }
API int aclrtQueryEventWaitStatus(void *which, int *status) { *status = 0; return SUCCESS; }
API int aclrtEventElapsedTime(float *time, event *begin, event *end) { *time = (float)(end->milliseconds - begin->milliseconds); return SUCCESS; }
API int aclrtEventGetTimestamp(event *which, uint64_t *time) { *time = (uint64_t)(which->milliseconds * 1e3); return SUCCESS; }

/* ---- settings that torch_npu makes and reads back ---- */
static int64_t options[64];
API int aclrtSetSysParamOpt(int option, int64_t value) { if (option < 64) options[option] = value; return SUCCESS; }
API int aclrtGetSysParamOpt(int option, int64_t *value) { *value = option < 64 ? options[option] : 0; return SUCCESS; }
API int aclrtCtxSetSysParamOpt(int option, int64_t value) { return aclrtSetSysParamOpt(option, value); }
API int aclrtPeekAtLastError(int level) { return SUCCESS; }
API int aclrtGetLastError(int level) { return SUCCESS; }
API int aclSetCompileopt(int option, const char *value) { return SUCCESS; }
API size_t aclGetCompileoptSize(int option) { return 32; }
API int aclGetCompileopt(int option, char *value, size_t size) { snprintf(value, size, "disable"); return SUCCESS; }
API void aclAppLog(int level, const char *function, const char *file, uint32_t line, const char *format, ...) {}

/* ---- what torch.profiler asks a card for (mspti.h): there are no records of it ---- */
enum { NO_MORE_RECORDS = 3 };  /* MSPTI_ERROR_MAX_LIMIT_REACHED */
API int msptiSubscribe(void **subscriber, void *function, void *data) { *subscriber = &card; return SUCCESS; }
API int msptiUnsubscribe(void *subscriber) { return SUCCESS; }
API int msptiActivityRegisterCallbacks(void *request, void *complete) { return SUCCESS; }
API int msptiActivityEnable(int kind) { return SUCCESS; }
API int msptiActivityDisable(int kind) { return SUCCESS; }
API int msptiActivityFlushAll(uint32_t flag) { return SUCCESS; }
API int msptiActivityGetNextRecord(void *data, size_t size, void **record) { *record = NULL; return NO_MORE_RECORDS; }
API int msptiActivityPushExternalCorrelationId(int kind, uint64_t number) { return SUCCESS; }
API int msptiActivityPopExternalCorrelationId(int kind, uint64_t *number) { if (number) *number = 0; return SUCCESS; }

/* ---- what torch_npu.profiler asks a card for (acl_prof.h): it records the host alone ---- */
API int aclprofInit(const char *folder, size_t length) { return SUCCESS; }
API int aclprofFinalize(void) { return SUCCESS; }
API void *aclprofCreateConfig(uint32_t *devices, uint32_t count, int metrics, void *events, uint64_t kinds) { return &card; }
API int aclprofDestroyConfig(void *config) { return SUCCESS; }
API int aclprofSetConfig(int kind, const char *value, size_t length) { return SUCCESS; }
API int aclprofWarmup(void *config) { return SUCCESS; }
API int aclprofStart(void *config) { return SUCCESS; }
API int aclprofStop(void *config) { return SUCCESS; }
API int drvGetDevNum(uint32_t *count) { *count = card.devices; return SUCCESS; }  /* of the driver below CANN */
API int halGetAPIVersion(int32_t *version) { *version = 0; return SUCCESS; }

/* ---- the records that an operator is called with; npu_card/records.py reads them ---- */
enum { TENSOR = 0x71, SCALAR, INTS, FLOATS, BOOLS, TENSORS, SCALARS };
typedef struct { int64_t number; int32_t kind, dtype, format, dimensions; void *data; int64_t offset, sizes[]; } tensor;
typedef struct { int64_t number; int32_t kind, dtype; char value[16]; } scalar;
typedef struct { int64_t number; int32_t kind, unused; uint64_t count; char data[]; } list;

/* Equal tensors get one number, under which Python keeps what it made of the first: a training repeats itself. */
enum { KNOWN = 1 << 14 };
static struct { uint64_t key[24]; int64_t number; } known[KNOWN];
static int64_t numbers;
static int64_t number_of(const tensor *made, uint64_t words) {
  uint64_t key[24] = {0}, hash = words;
  if (words > 24) return 0;
  memcpy(key, &made->kind, 8 * words);
  for (uint64_t i = 0; i < words; i++) hash = (hash ^ key[i]) * 0x9e3779b97f4a7c15ull, hash ^= hash >> 29;
  hash %= KNOWN;
  pthread_mutex_lock(&lock);
  if (!known[hash].number || memcmp(known[hash].key, key, sizeof key)) {
    memcpy(known[hash].key, key, sizeof key);
    known[hash].number = ++numbers;
  }
  int64_t number = known[hash].number;
  pthread_mutex_unlock(&lock);
  return number;
}
API tensor *aclCreateTensor(const int64_t *sizes, uint64_t dimensions, int dtype, const int64_t *strides, int64_t offset,
                            int format, const int64_t *storage, uint64_t storage_dimensions, void *data) {
  tensor *made = malloc(sizeof *made + 16 * dimensions);
  *made = (tensor){0, TENSOR, dtype, format, (int32_t)dimensions, data, offset};
  memcpy(made->sizes, sizes, 8 * dimensions);
  if (strides) memcpy(made->sizes + dimensions, strides, 8 * dimensions);
  else for (int64_t i = (int64_t)dimensions - 1, step = 1; i >= 0; step *= sizes[i--]) made->sizes[dimensions + i] = step;
  made->number = number_of(made, 4 + 2 * dimensions);
  return made;
}
static int size_of(int dtype) {
  switch (dtype) {  /* aclDataType */
    case 2: case 4: case 12: return 1;
    case 1: case 6: case 7: case 27: return 2;
    case 0: case 3: case 8: return 4;
    case 17: return 16;
    default: return 8;
  }
}
API scalar *aclCreateScalar(void *value, int dtype) {
  scalar *made = calloc(1, sizeof *made);
  made->kind = SCALAR, made->dtype = dtype;
  memcpy(made->value, value, size_of(dtype));
  return made;
}
static list *make_list(int kind, const void *data, uint64_t count, int width) {
  list *made = malloc(sizeof *made + count * width);
  *made = (list){0, kind, 0, count};
  memcpy(made->data, data, count * width);
  return made;
}
API list *aclCreateIntArray(const int64_t *data, uint64_t count) { return make_list(INTS, data, count, 8); }
API list *aclCreateFloatArray(const float *data, uint64_t count) { return make_list(FLOATS, data, count, 4); }
API list *aclCreateBoolArray(const bool *data, uint64_t count) { return make_list(BOOLS, data, count, 1); }
/* The same for lists: what an optimizer is given is the same tensors in every step. */
static struct { uint64_t count; int64_t *numbers, number; } known_lists[1 << 10];
static int64_t number_of_list(const tensor *const *data, uint64_t count) {
  uint64_t hash = count;
  int64_t *key = malloc(8 * count + 8);
  for (uint64_t i = 0; i < count; i++) {
    key[i] = data[i] ? data[i]->number : 0;
    if (!key[i]) { free(key); return 0; }
    hash = (hash ^ (uint64_t)key[i]) * 0x9e3779b97f4a7c15ull, hash ^= hash >> 29;
  }
  hash %= sizeof known_lists / sizeof *known_lists;
  pthread_mutex_lock(&lock);
  if (!known_lists[hash].number || known_lists[hash].count != count || memcmp(known_lists[hash].numbers, key, 8 * count)) {
    free(known_lists[hash].numbers);
    known_lists[hash].numbers = key, known_lists[hash].count = count, known_lists[hash].number = ++numbers;
  } else free(key);
  int64_t number = known_lists[hash].number;
  pthread_mutex_unlock(&lock);
  return number;
}
API list *aclCreateTensorList(const tensor *const *data, uint64_t count) {
  list *made = make_list(TENSORS, data, count, 8);
  made->number = number_of_list(data, count);
  return made;
}
API list *aclCreateScalarList(const scalar *const *data, uint64_t count) { return make_list(SCALARS, data, count, 8); }
API int aclDestroyTensor(void *gone) { free(gone); return SUCCESS; }
API int aclDestroyScalar(void *gone) { free(gone); return SUCCESS; }
API int aclDestroyIntArray(void *gone) { free(gone); return SUCCESS; }
API int aclDestroyFloatArray(void *gone) { free(gone); return SUCCESS; }
API int aclDestroyBoolArray(void *gone) { free(gone); return SUCCESS; }
API int aclDestroyTensorList(list *gone) {
  if (gone) for (uint64_t i = 0; i < gone->count; i++) free(((void **)gone->data)[i]);
  free(gone);
  return SUCCESS;
}
API int aclDestroyScalarList(list *gone) { return aclDestroyTensorList(gone); }
API int aclDestroyAclOpExecutor(void *gone) { return SUCCESS; }
API int aclGetViewShape(const tensor *of, int64_t **sizes, uint64_t *dimensions) {
  *dimensions = of->dimensions;
  *sizes = malloc(8 * of->dimensions + 8);
  memcpy(*sizes, of->sizes, 8 * of->dimensions);
  return SUCCESS;
}

/* ---- operators: one function each, which keeps all registers and stack slots of its arguments ---- */
#if defined(__aarch64__)
enum { REGISTERS = 8 };
#define IN_REGISTERS int64_t a0, int64_t a1, int64_t a2, int64_t a3, int64_t a4, int64_t a5, int64_t a6, int64_t a7
#define REGISTER_VALUES a0, a1, a2, a3, a4, a5, a6, a7
#else
enum { REGISTERS = 6 };
#define IN_REGISTERS int64_t a0, int64_t a1, int64_t a2, int64_t a3, int64_t a4, int64_t a5
#define REGISTER_VALUES a0, a1, a2, a3, a4, a5
#endif
#define TEN(s) int64_t s##0, int64_t s##1, int64_t s##2, int64_t s##3, int64_t s##4, int64_t s##5, int64_t s##6, int64_t s##7, int64_t s##8, int64_t s##9
#define TEN_VALUES(s) s##0, s##1, s##2, s##3, s##4, s##5, s##6, s##7, s##8, s##9
typedef struct { double floats[8]; int64_t words[REGISTERS + 60]; } arguments;
static int (*compute)(int, const arguments *);
/* What a signal raised while Python computed (Ctrl-C) is raised in the program, when it goes on. */
static struct { int (*ensure)(void); void (*release)(int); int (*raise)(unsigned long, void *); } python;
static __thread struct { unsigned long thread; void *kind; } raised;
API void card_python(void *ensure, void *release, void *raise) { python.ensure = ensure, python.release = release, python.raise = raise; }
API void card_raise(unsigned long thread, void *kind) { raised.thread = thread, raised.kind = kind; }
static int answer(int code) {
  if (!raised.kind) return code;
  int state = python.ensure();
  python.raise(raised.thread, raised.kind);
  raised.kind = NULL;
  python.release(state);
  return code;
}
API void card_compute(int (*function)(int, const arguments *)) { compute = function; }
#define OP(name, number)                                                                                              \
  API int name##GetWorkspaceSize(IN_REGISTERS, double f0, double f1, double f2, double f3, double f4, double f5,      \
                                 double f6, double f7, TEN(s), TEN(t), TEN(u), TEN(v), TEN(w), TEN(x)) {              \
    arguments all = {{f0, f1, f2, f3, f4, f5, f6, f7},                                                                \
                     {REGISTER_VALUES, TEN_VALUES(s), TEN_VALUES(t), TEN_VALUES(u), TEN_VALUES(v), TEN_VALUES(w), TEN_VALUES(x)}}; \
    if (forked) return refuse_fork();                                                                                 \
    int code = unfinished ? wait_for_writers(false) : SUCCESS;                                                        \
    return code ? code : compute ? answer(compute(number, &all)) : NOT_SUPPORTED;                                     \
  }                                                                                                                   \
  API int name(void *workspace, uint64_t size, void *executor, void *stream) { return SUCCESS; }
#include "operators.inc"

/* ---- the older interface of operators: tensors are described, attributes have names ---- */
typedef struct { int32_t dtype, format, dimensions, unused; int64_t sizes[16]; void *constant; char name[64]; } description;
typedef struct { void *data; uint64_t size; } buffer;
typedef struct attribute { struct attribute *next; char name[64]; int64_t kind, whole; double real; void *data; uint64_t count; } attribute;
typedef struct { attribute *first; } attributes;
API description *aclCreateTensorDesc(int dtype, int dimensions, const int64_t *sizes, int format) {
  description *made = calloc(1, sizeof *made);
  made->dtype = dtype, made->format = format, made->dimensions = dimensions;
  memcpy(made->sizes, sizes, 8 * dimensions);
  return made;
}
API void aclDestroyTensorDesc(description *gone) { free(gone); }
API int aclSetTensorFormat(description *of, int format) { return SUCCESS; }
API int aclSetTensorShape(description *of, int dimensions, const int64_t *sizes) { return SUCCESS; }
API int aclSetTensorPlaceMent(description *of, int place) { return SUCCESS; }
API void aclSetTensorDescName(description *of, const char *name) { snprintf(of->name, sizeof of->name, "%s", name); }
API int aclSetTensorConst(description *of, void *data, size_t size) { of->constant = data; return SUCCESS; }
API int aclGetTensorDescType(description *of) { return of->dtype; }
API int aclGetTensorDescFormat(description *of) { return of->format; }
API size_t aclGetTensorDescNumDims(description *of) { return of->dimensions; }
API int aclGetTensorDescDimV2(description *of, size_t at, int64_t *size) { *size = of->sizes[at]; return SUCCESS; }
API buffer *aclCreateDataBuffer(void *data, size_t size) { buffer *made = malloc(sizeof *made); *made = (buffer){data, size}; return made; }
API int aclDestroyDataBuffer(buffer *gone) { free(gone); return SUCCESS; }
API attributes *aclopCreateAttr(void) { return calloc(1, sizeof(attributes)); }
API void aclopDestroyAttr(attributes *gone) {
  for (attribute *at = gone->first, *next; at; at = next) next = at->next, free(at->data), free(at);
  free(gone);
}
static attribute *add(attributes *to, const char *name, char kind, const void *data, uint64_t count, size_t width) {
  attribute *made = calloc(1, sizeof *made);
  snprintf(made->name, sizeof made->name, "%s", name);
  made->kind = kind, made->count = count, made->next = to->first;
  if (data) made->data = memcpy(malloc(count * width + 1), data, count * width);
  to->first = made;
  return made;
}
API int aclopSetAttrBool(attributes *to, const char *name, uint8_t value) { add(to, name, 'b', NULL, 0, 0)->whole = value; return SUCCESS; }
API int aclopSetAttrInt(attributes *to, const char *name, int64_t value) { add(to, name, 'i', NULL, 0, 0)->whole = value; return SUCCESS; }
API int aclopSetAttrDataType(attributes *to, const char *name, int value) { add(to, name, 'k', NULL, 0, 0)->whole = value; return SUCCESS; }
API int aclopSetAttrFloat(attributes *to, const char *name, float value) { add(to, name, 'f', NULL, 0, 0)->real = value; return SUCCESS; }
API int aclopSetAttrString(attributes *to, const char *name, const char *value) { add(to, name, 's', value, strlen(value), 1); return SUCCESS; }
API int aclopSetAttrListInt(attributes *to, const char *name, int count, const int64_t *values) { add(to, name, 'I', values, count, 8); return SUCCESS; }
API int aclopSetAttrListFloat(attributes *to, const char *name, int count, const float *values) { add(to, name, 'F', values, count, 4); return SUCCESS; }
API int aclopSetAttrListBool(attributes *to, const char *name, int count, const uint8_t *values) { add(to, name, 'B', values, count, 1); return SUCCESS; }
API int aclopSetAttrListListInt(attributes *to, const char *name, int count, const int *counts, const int64_t *const values[]) { add(to, name, 'L', NULL, count, 0); return SUCCESS; }
static int (*compute_named)(const char *, int, description **, buffer **, int, description **, buffer **, attribute *);
API void card_compute_named(int (*function)(const char *, int, description **, buffer **, int, description **, buffer **, attribute *)) { compute_named = function; }
API int aclopCompileAndExecute(const char *name, int inputs, description **input, buffer **from, int outputs, description **output,
                               buffer **to, attributes *with, int engine, int flag, const char *path, void *stream) {
  if (forked) return refuse_fork();
  int code = unfinished ? wait_for_writers(false) : SUCCESS;
  if (code) return code;
  return compute_named ? answer(compute_named(name, inputs, input, from, outputs, output, to, with ? with->first : NULL)) : NOT_SUPPORTED;
}
API int aclopCompileAndExecuteV2(const char *name, int inputs, description **input, buffer **from, int outputs, description **output,
                                 buffer **to, attributes *with, int engine, int flag, const char *path, void *stream) {
  return aclopCompileAndExecute(name, inputs, input, from, outputs, output, to, with, engine, flag, path, stream);
}

/* ---- what torch_npu's libraries want at load and a program on this card never gets ---- */
#define ABSENT(name) API int name(void) { return NOT_SUPPORTED; }
#include "absent.inc"
