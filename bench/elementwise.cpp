// Bytes a second of the operators that move memory and little else, beside a plain copy on one core.
// Usage: bench_elementwise [mebibytes of a tensor]
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "purine/backend/cpu/kernels.h"
#include "purine/ops/activation.h"
#include "purine/ops/bias.h"
#include "purine/ops/binary.h"
#include "purine/ops/loss.h"
#include "purine/ops/reduce.h"
#include "purine/ops/relu.h"
#include "purine/ops/reorder.h"
#include "purine/ops/softmax.h"
#include "purine/ops/sum_n.h"
#include "purine/ops/update.h"
#include "purine/program/kernel.h"

namespace {

using namespace purine;

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, Free>;

Memory allocate(std::size_t bytes) {
  const std::size_t size = (bytes + 63) / 64 * 64;
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(64, size)));
  auto* values = reinterpret_cast<float*>(memory.get());
  for (std::size_t i = 0; i < size / sizeof(float); ++i) values[i] = static_cast<float>(i % 97) * 0.01F;
  return memory;
}

/// Seconds of the fastest of several runs.
template <typename Function>
double fastest(const Function& function) {
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    function();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

void print(const std::string& name, double bytes, double seconds) {
  fmt::print("{:<28} {:8.2f} GB/s {:10.1f} us\n", name, bytes / seconds / 1e9, seconds * 1e6);
}

void measure(const KernelRegistry& kernels, const std::string& name, const ContractPtr& contract,
             const std::vector<TensorInfo>& inputs, bool in_place = false, Layout from = Layout::plain,
             Layout to = Layout::plain) {
  const std::vector<TensorInfo> outputs = contract->infer(inputs);
  const std::vector<Layout> input_layouts(inputs.size(), from);
  const std::vector<Layout> output_layouts(outputs.size(), to);
  const std::unique_ptr<Kernel> kernel =
      kernels.bind({*contract, inputs, outputs, input_layouts, output_layouts, 1, 2, name});
  std::vector<Memory> memory;
  std::vector<std::byte*> input_pointers;
  std::vector<std::byte*> output_pointers;
  double bytes = 0;
  for (const TensorInfo& info : inputs) {
    memory.push_back(allocate(info.bytes()));
    if (!is_floating(info.dtype)) std::memset(memory.back().get(), 0, info.bytes());
    input_pointers.push_back(memory.back().get());
    bytes += static_cast<double>(info.bytes());
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    bytes += static_cast<double>(outputs[i].bytes());
    if (in_place) {
      output_pointers.push_back(input_pointers[i]);
      continue;
    }
    memory.push_back(allocate(outputs[i].bytes()));
    output_pointers.push_back(memory.back().get());
  }
  print(name, bytes, fastest([&] {
          for (int part = 0; part < kernel->parts(); ++part) {
            KernelCall call;
            call.inputs = input_pointers;
            call.outputs = output_pointers;
            call.part = part;
            kernel->run(call);
          }
        }));
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t mebibytes = argc > 1 ? std::atoll(argv[1]) : 64;
  KernelRegistry kernels;
  cpu::register_cpu_kernels(kernels);
  const std::int64_t samples = std::max<std::int64_t>(1, mebibytes * 262144 / (64 * 56 * 56));
  const TensorInfo image{{samples, 64, 56, 56}, DType::f32};
  const TensorInfo channels{{64}, DType::f32};
  const TensorInfo scalar{{}, DType::f32};
  fmt::print("tensors of {} MB\n", image.bytes() / 1000000);
  const Memory from = allocate(image.bytes());
  const Memory to = allocate(image.bytes());
  print("copy", 2 * static_cast<double>(image.bytes()),
        fastest([&] { std::memcpy(to.get(), from.get(), image.bytes()); }));
  const Layout last = Layout::channels_last;
  measure(kernels, "relu", std::make_shared<ops::Relu>(), {image});
  measure(kernels, "relu in place", std::make_shared<ops::Relu>(), {image}, true);
  measure(kernels, "relu_gradient", std::make_shared<ops::ReluGradient>(), {image, image});
  measure(kernels, "add", std::make_shared<ops::Add>(), {image, image});
  measure(kernels, "sum_n of 4", std::make_shared<ops::SumN>(), {image, image, image, image});
  measure(kernels, "bias", std::make_shared<ops::Bias>(1), {image, channels}, true);
  measure(kernels, "bias, channels last", std::make_shared<ops::Bias>(1), {image, channels}, true, last,
          last);
  measure(kernels, "sum per channel", std::make_shared<ops::Sum>(ops::Reduction{{0, 2, 3}, false}), {image});
  measure(kernels, "sum per channel, last", std::make_shared<ops::Sum>(ops::Reduction{{0, 2, 3}, false}),
          {image}, false, last);
  measure(kernels, "reorder to channels last", std::make_shared<ops::Reorder>(last), {image}, false,
          Layout::plain, last);
  measure(kernels, "reorder to plain", std::make_shared<ops::Reorder>(Layout::plain), {image}, false, last);
  measure(kernels, "momentum_update", std::make_shared<ops::MomentumUpdate>(ops::MomentumOptions{0.9, 1e-4}),
          {image, image, image, scalar}, true);
  measure(kernels, "adam_update", std::make_shared<ops::AdamUpdate>(ops::AdamOptions{}),
          {image, image, image, image, scalar, {{}, DType::i64}}, true);
  measure(kernels, "sigmoid", std::make_shared<ops::Sigmoid>(), {image});
  measure(kernels, "tanh", std::make_shared<ops::Tanh>(), {image});
  const TensorInfo logits{{image.shape.elements() / 1000, 1000}, DType::f32};
  measure(kernels, "softmax of 1000", std::make_shared<ops::Softmax>(1), {logits});
  measure(kernels, "cross entropy of 1000", std::make_shared<ops::SoftmaxCrossEntropy>(),
          {logits, {{logits.shape[0]}, DType::i64}});
  return 0;
}
