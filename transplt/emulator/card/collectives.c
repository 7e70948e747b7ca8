/* The collective library of an Ascend card (libhccl.so): each call hands its arguments to one function of Python
   (npu_card/collectives.py). Names and arguments are those of CANN's public C interface (hccl.h). */
#include <stdint.h>

#define API __attribute__((visibility("default")))
enum { SUCCESS = 0, NOT_SUPPORTED = 5 };  /* HCCL_E_NOT_SUPPORT */
static int (*carry_out)(int, const int64_t *);
API void card_carry_out(int (*function)(int, const int64_t *)) { carry_out = function; }
#define CALL(name, number)                                                                                             \
  API int Hccl##name(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f, int64_t g, int64_t h, int64_t i, \
                     int64_t j) {                                                                                      \
    int64_t all[] = {a, b, c, d, e, f, g, h, i, j};                                                                    \
    return carry_out ? carry_out(number, all) : NOT_SUPPORTED;                                                         \
  }
/* The order is that of NAMES in npu_card/collectives.py. */
CALL(GetRootInfo, 0)
CALL(CommInitRootInfo, 1)
CALL(CommInitRootInfoConfig, 2)
CALL(CommDestroy, 3)
CALL(AllReduce, 4)
CALL(Broadcast, 5)
CALL(AllGather, 6)
CALL(ReduceScatter, 7)
CALL(Reduce, 8)
CALL(Send, 9)
CALL(Recv, 10)
CALL(Scatter, 11)
CALL(AlltoAll, 12)
CALL(AlltoAllV, 13)
CALL(Barrier, 14)
CALL(BatchSendRecv, 15)
CALL(GetCommName, 16)
CALL(AllGatherV, 17)
CALL(ReduceScatterV, 18)
CALL(GroupStart, 19)
CALL(GroupEnd, 20)
CALL(CommInitAll, 21)
API int HcclGetCommAsyncError(void *communicator, int *error) { *error = 0; return SUCCESS; }
API int HcclSetConfig(int key, int value) { return SUCCESS; }
API uint32_t HcclGetCommConfigCapability(void) { return 3; }
