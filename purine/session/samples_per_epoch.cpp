#include "purine/session/samples_per_epoch.h"

#include <string>

#include "purine/core/error.h"
#include "purine/graph/contract.h"

namespace purine {

std::int64_t find_samples_per_epoch(Graph& graph) {
  std::int64_t samples = 0;
  Operator first;
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    const Operator op = graph.op(i);
    if (!op.contract().brings_samples()) continue;
    const std::int64_t found = op.contract().samples_per_epoch();
    if (first.valid() && found != samples) {
      throw Error("session",
                  "has " + std::to_string(found) + " samples an epoch, " + first.path() + " has " +
                      std::to_string(samples),
                  "the data sources of one graph must have equally many samples")
          .at(op.path());
    }
    first = op;
    samples = found;
  }
  return samples;
}

}  // namespace purine
