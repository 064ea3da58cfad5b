#include "purine/backend/cpu/worker_thread.h"

#include <omp.h>

namespace purine::cpu {

void prepare_worker_thread() {
  omp_set_num_threads(1);
}

}  // namespace purine::cpu
