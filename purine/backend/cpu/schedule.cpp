#include "purine/ops/schedule.h"

#include <cstdint>

#include "purine/program/kernel.h"

namespace purine::cpu {

void register_schedule(KernelRegistry& registry) {
  registry.add("learning_rate", [](const BindContext& context) {
    const ops::ScheduleOptions options = context.as<ops::LearningRate>().options();
    return make_kernel([options](const KernelCall& call) {
      *call.output<float>(0) =
          static_cast<float>(ops::learning_rate_at(options, *call.input<std::int64_t>(0)));
    });
  });
}

}  // namespace purine::cpu
