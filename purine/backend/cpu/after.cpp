#include <cstring>

#include "purine/backend/cpu/elementwise.h"
#include "purine/program/kernel.h"

namespace purine::cpu {

void register_after(KernelRegistry& registry) {
  // Where the result could not be a view.
  registry.add("after", [](const BindContext& context) {
    const auto bytes = static_cast<std::int64_t>(context.output(0).bytes());
    const int parts = elementwise_parts(bytes / 4);
    return make_kernel(
        [=](const KernelCall& call) {
          const auto [begin, end] = part_range(bytes, call.part, parts);
          std::memcpy(call.output<std::byte>(0) + begin, call.input<std::byte>(0) + begin,
                      static_cast<std::size_t>(end - begin));
        },
        parts);
  });
}

}  // namespace purine::cpu
