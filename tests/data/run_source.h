// Runs a source's kernel on memory of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "purine/data/source.h"
#include "purine/program/kernel.h"

namespace purine::test {

struct BatchValues {
  std::vector<float> images;
  std::vector<std::int64_t> labels;
  bool operator==(const BatchValues& other) const = default;
};

/// A source's kernel, bound.
class BoundSource {
 public:
  explicit BoundSource(ContractPtr contract, std::uint64_t seed = 1, Layout layout = Layout::plain)
      : contract_(std::move(contract)), infos_(contract_->infer({})), layouts_{layout, Layout::plain} {
    KernelRegistry kernels;
    data::register_kernels(kernels);
    kernel_ = kernels.bind({*contract_, {}, infos_, {}, layouts_, seed, 0, "data"});
  }

  int parts() const { return kernel_->parts(); }

  /// Runs all parts of an iteration, from the last to the first, or by as many threads as are told.
  BatchValues run(std::int64_t iteration, int threads = 1) const {
    BatchValues values;
    values.images.assign(static_cast<std::size_t>(infos_[0].shape.elements()), -1e30F);
    values.labels.assign(static_cast<std::size_t>(infos_[1].shape.elements()), -1);
    std::byte* outputs[] = {reinterpret_cast<std::byte*>(values.images.data()),
                            reinterpret_cast<std::byte*>(values.labels.data())};
    const auto run_parts = [&](int first) {
      KernelCall call;
      call.outputs = outputs;
      call.iteration = iteration;
      for (int part = parts() - 1 - first; part >= 0; part -= threads) {
        call.part = part;
        kernel_->run(call);
      }
    };
    if (threads == 1) {
      run_parts(0);
    } else {
      std::vector<std::thread> workers;
      for (int i = 0; i < threads; ++i) workers.emplace_back(run_parts, i);
      for (std::thread& worker : workers) worker.join();
    }
    return values;
  }

 private:
  ContractPtr contract_;
  std::vector<TensorInfo> infos_;
  std::vector<Layout> layouts_;
  std::unique_ptr<Kernel> kernel_;
};

/// The contract for samples [begin, end) of a batch of `units`.
inline ContractPtr piece_of(const ContractPtr& contract, std::int64_t begin, std::int64_t end,
                            std::int64_t units) {
  return contract->piece(contract->split_rules({})[0], {begin, end, units}, {});
}

}  // namespace purine::test
