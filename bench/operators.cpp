// How fast the CPU's kernels are, one thread, beside what the processor can do at most.
//
//   bench_operators [batch = 32] [seconds a measurement = 0.2] [text that the lines to measure contain]
//
// Prints the processor's own multiply-add peak; the convolutions of GoogLeNet for 224 x 224 images in
// GFLOP/s, forward, input gradient and weight gradient, by layout; and what only moves memory in GB/s, each
// input and output counted once. Times are the thread's processor time, and every figure is the best of its
// repetitions.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "purine/backend/cpu/kernels.h"
#include "purine/backend/cpu/worker_thread.h"
#include "purine/ops/batch_normalization.h"
#include "purine/ops/convolution.h"
#include "purine/ops/local_response_normalization.h"
#include "purine/ops/matmul.h"
#include "purine/ops/pooling.h"
#include "purine/program/kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/operators.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace purine::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Multiply-adds that depend on nothing but themselves, enough of them to hide their latency; returns how
/// many operations they were.
double multiply_add(int rounds, float* result) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999F);
  const auto summand = hn::Set(d, 0.001F);
  auto a = hn::Set(d, 0.1F), b = hn::Set(d, 0.2F), c = hn::Set(d, 0.3F), e = hn::Set(d, 0.4F);
  auto f = hn::Set(d, 0.5F), g = hn::Set(d, 0.6F), h = hn::Set(d, 0.7F), i = hn::Set(d, 0.8F);
  auto j = hn::Set(d, 0.9F), k = hn::Set(d, 1.0F), l = hn::Set(d, 1.1F), m = hn::Set(d, 1.2F);
  for (int round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, factor, summand);
    b = hn::MulAdd(b, factor, summand);
    c = hn::MulAdd(c, factor, summand);
    e = hn::MulAdd(e, factor, summand);
    f = hn::MulAdd(f, factor, summand);
    g = hn::MulAdd(g, factor, summand);
    h = hn::MulAdd(h, factor, summand);
    i = hn::MulAdd(i, factor, summand);
    j = hn::MulAdd(j, factor, summand);
    k = hn::MulAdd(k, factor, summand);
    l = hn::MulAdd(l, factor, summand);
    m = hn::MulAdd(m, factor, summand);
  }
  const auto sum =
      hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)),
              hn::Add(hn::Add(hn::Add(f, g), hn::Add(h, i)), hn::Add(hn::Add(j, k), hn::Add(l, m))));
  *result = hn::GetLane(hn::SumOfLanes(d, sum));
  return 12.0 * 2.0 * static_cast<double>(hn::Lanes(d)) * rounds;
}

}  // namespace
}  // namespace purine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace purine {
namespace {

HWY_EXPORT(multiply_add);

/// What to measure and how long.
struct Settings {
  KernelRegistry kernels;
  std::int64_t batch = 32;
  double budget = 0.2;  ///< seconds a measurement
  std::string only;     ///< lines without this text are left out

  bool includes(std::string_view line) const { return line.find(only) != std::string_view::npos; }
};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_at_best(double budget, const std::function<void()>& run) {
  run();
  double best = 1e9;
  double total = 0;
  for (int repetitions = 0; repetitions < 3 || total < budget; ++repetitions) {
    const double start = processor_seconds();
    run();
    const double seconds = processor_seconds() - start;
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

double peak_gigaflops(double budget) {
  float result = 0;
  double operations = 0;
  const double seconds =
      seconds_at_best(budget, [&] { operations = HWY_DYNAMIC_DISPATCH(multiply_add)(1000000, &result); });
  if (result == 0) fmt::print("(the sum was 0)\n");
  return operations / seconds / 1e9;
}

struct Free {
  void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }
};
using Buffer = std::unique_ptr<std::byte, Free>;

Buffer make_buffer(std::size_t bytes) {
  Buffer buffer(
      static_cast<std::byte*>(::operator new (std::max<std::size_t>(bytes, 64), std::align_val_t{64})));
  std::fill_n(buffer.get(), bytes, std::byte{0});
  return buffer;
}

/// One operator with its kernel and memory. Floating values lie in [-0.5, 0.5], indices are 0.
class Runner {
 public:
  Runner(const KernelRegistry& kernels, const ContractPtr& contract, std::vector<TensorInfo> inputs,
         Layout layout)
      : inputs_(std::move(inputs)), outputs_(contract->infer(inputs_)) {
    const LayoutRule rule = contract->layouts();
    const std::vector<Layout> input_layouts = layouts(inputs_, rule.inputs, layout);
    const std::vector<Layout> output_layouts = layouts(outputs_, rule.outputs, layout);
    kernel_ = kernels.bind({*contract, inputs_, outputs_, input_layouts, output_layouts, 1, 1, "bench"});
    cost_ = contract->cost(inputs_, outputs_);
    for (const TensorInfo& info : inputs_) {
      buffers_.push_back(make_buffer(info.bytes()));
      input_pointers_.push_back(buffers_.back().get());
      if (info.dtype == DType::f32)
        fill(reinterpret_cast<float*>(buffers_.back().get()), info.shape.elements());
    }
    for (const TensorInfo& info : outputs_) {
      buffers_.push_back(make_buffer(info.bytes()));
      output_pointers_.push_back(buffers_.back().get());
    }
    scratch_ = make_buffer(kernel_->scratch_bytes());
  }

  double operations() const { return cost_.operations; }
  double bytes() const { return cost_.bytes; }
  void run() {
    KernelCall call;
    call.inputs = input_pointers_;
    call.outputs = output_pointers_;
    call.scratch = scratch_.get();
    for (call.part = 0; call.part < kernel_->parts(); ++call.part) kernel_->run(call);
  }

 private:
  static std::vector<Layout> layouts(const std::vector<TensorInfo>& infos, std::uint32_t flexible,
                                     Layout layout) {
    std::vector<Layout> layouts;
    for (std::size_t i = 0; i < infos.size(); ++i) {
      const bool may = (flexible >> std::min<std::size_t>(i, 31) & 1U) != 0 && infos[i].shape.rank() == 4;
      layouts.push_back(may ? layout : Layout::plain);
    }
    return layouts;
  }
  static void fill(float* values, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * 7919 % 1001) / 1000.0F - 0.5F;
  }

  std::vector<TensorInfo> inputs_;
  std::vector<TensorInfo> outputs_;
  std::unique_ptr<Kernel> kernel_;
  Cost cost_;
  std::vector<Buffer> buffers_;
  std::vector<std::byte*> input_pointers_;
  std::vector<std::byte*> output_pointers_;
  Buffer scratch_;
};

struct Convolution {
  std::int64_t channels;
  std::int64_t extent;
  std::int64_t outputs;
  std::int64_t kernel;
  std::int64_t stride;
  int times;  ///< how often GoogLeNet has it
};

/// GoogLeNet's distinct convolutions (Szegedy and others, "Going deeper with convolutions", 2014, table 1).
std::vector<Convolution> googlenet() {
  return {{3, 224, 64, 7, 2, 1},   {64, 56, 64, 1, 1, 1},   {64, 56, 192, 3, 1, 1},  {192, 28, 64, 1, 1, 1},
          {192, 28, 96, 1, 1, 1},  {96, 28, 128, 3, 1, 1},  {192, 28, 16, 1, 1, 1},  {16, 28, 32, 5, 1, 1},
          {192, 28, 32, 1, 1, 1},  {256, 28, 128, 1, 1, 2}, {128, 28, 192, 3, 1, 1}, {256, 28, 32, 1, 1, 1},
          {32, 28, 96, 5, 1, 1},   {256, 28, 64, 1, 1, 1},  {480, 14, 192, 1, 1, 1}, {480, 14, 96, 1, 1, 1},
          {96, 14, 208, 3, 1, 1},  {480, 14, 16, 1, 1, 1},  {16, 14, 48, 5, 1, 1},   {480, 14, 64, 1, 1, 1},
          {512, 14, 160, 1, 1, 1}, {512, 14, 112, 1, 1, 2}, {112, 14, 224, 3, 1, 1}, {512, 14, 24, 1, 1, 2},
          {24, 14, 64, 5, 1, 2},   {512, 14, 64, 1, 1, 3},  {512, 14, 128, 1, 1, 2}, {128, 14, 256, 3, 1, 1},
          {512, 14, 144, 1, 1, 1}, {144, 14, 288, 3, 1, 1}, {512, 14, 32, 1, 1, 1},  {32, 14, 64, 5, 1, 1},
          {528, 14, 256, 1, 1, 1}, {528, 14, 160, 1, 1, 1}, {160, 14, 320, 3, 1, 1}, {528, 14, 32, 1, 1, 1},
          {32, 14, 128, 5, 1, 1},  {528, 14, 128, 1, 1, 1}, {832, 7, 256, 1, 1, 1},  {832, 7, 160, 1, 1, 1},
          {160, 7, 320, 3, 1, 1},  {832, 7, 32, 1, 1, 1},   {32, 7, 128, 5, 1, 1},   {832, 7, 128, 1, 1, 2},
          {832, 7, 384, 1, 1, 1},  {832, 7, 192, 1, 1, 1},  {192, 7, 384, 3, 1, 1},  {832, 7, 48, 1, 1, 1},
          {48, 7, 128, 5, 1, 1}};
}

TensorInfo f32(Shape shape) {
  return {shape, DType::f32};
}

void print_convolutions(const Settings& settings) {
  const auto& [kernels, batch, budget, only] = settings;
  fmt::print("\nconvolutions, batch {}, GFLOP/s      plain layout              channels last\n", batch);
  fmt::print("{:>26} {:>8} {:>8} {:>8}  {:>8} {:>8} {:>8}\n", "", "forward", "input", "weight", "forward",
             "input", "weight");
  double operations = 0;
  double totals[2][3] = {};
  for (const Convolution& c : googlenet()) {
    const std::int64_t padding = c.kernel / 2;
    const ops::Conv2dOptions options{.stride = {c.stride, c.stride},
                                     .padding = {padding, padding, padding, padding}};
    const TensorInfo image = f32({batch, c.channels, c.extent, c.extent});
    const TensorInfo weight = f32({c.outputs, c.channels, c.kernel, c.kernel});
    const TensorInfo bias = f32({c.outputs});
    const TensorInfo output = ops::Conv2d(options).infer(std::vector{image, weight})[0];
    const std::string name = fmt::format("{:4} x {:3} -> {:3}, {} x {} / {}", c.channels, c.extent, c.outputs,
                                         c.kernel, c.kernel, c.stride);
    if (!settings.includes(name)) continue;
    fmt::print("{}  ", name);
    for (const Layout layout : {Layout::plain, Layout::channels_last}) {
      Runner forward(kernels, std::make_shared<ops::Conv2d>(options), {image, weight, bias}, layout);
      Runner input(kernels,
                   std::make_shared<ops::Conv2dInputGradient>(options, std::array{c.extent, c.extent}),
                   {output, weight}, layout);
      Runner weights(
          kernels, std::make_shared<ops::Conv2dWeightGradient>(options, std::array{c.kernel, c.kernel}, true),
          {image, output}, layout);
      int column = 0;
      for (Runner* runner : {&forward, &input, &weights}) {
        const double seconds = seconds_at_best(budget, [&] { runner->run(); });
        fmt::print(" {:8.1f}", runner->operations() / seconds / 1e9);
        totals[layout == Layout::channels_last][column++] += seconds * c.times;
      }
      operations += c.times * forward.operations() / 2;
      fmt::print(" ");
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  fmt::print("{:>26}", "all together");
  for (const auto& layout : totals) {
    for (const double seconds : layout) fmt::print(" {:8.1f}", operations / seconds / 1e9);
    fmt::print(" ");
  }
  fmt::print("\n{:>26}", "milliseconds");
  for (const auto& layout : totals) {
    for (const double seconds : layout) fmt::print(" {:8.1f}", seconds * 1e3);
    fmt::print(" ");
  }
  fmt::print("\n");
}

void print_products(const Settings& settings) {
  const auto& [kernels, batch, budget, only] = settings;
  fmt::print("\nfully connected layers, batch {}, GFLOP/s\n{:>26} {:>8} {:>8} {:>8}\n", batch, "", "forward",
             "input", "weight");
  for (const auto& [inputs, outputs] : {std::pair<std::int64_t, std::int64_t>{1024, 1000},
                                        {9216, 4096},
                                        {25088, 4096},
                                        {4096, 4096},
                                        {800, 500}}) {
    Runner forward(kernels, std::make_shared<ops::Linear>(),
                   {f32({batch, inputs}), f32({outputs, inputs}), f32({outputs})}, Layout::plain);
    Runner input(kernels, std::make_shared<ops::Matmul>(ops::MatmulOptions{}),
                 {f32({batch, outputs}), f32({outputs, inputs})}, Layout::plain);
    Runner weight(kernels, std::make_shared<ops::Matmul>(ops::MatmulOptions{.transpose_a = true}),
                  {f32({batch, outputs}), f32({batch, inputs})}, Layout::plain);
    const std::string name = fmt::format("{:>12} -> {:>5}", inputs, outputs);
    if (!settings.includes(name)) continue;
    fmt::print("{}       ", name);
    for (Runner* runner : {&forward, &input, &weight}) {
      fmt::print(" {:8.1f}", runner->operations() / seconds_at_best(budget, [&] { runner->run(); }) / 1e9);
    }
    fmt::print("\n");
  }
}

void print_bandwidth(const Settings& settings) {
  const auto& [kernels, batch, budget, only] = settings;
  fmt::print("\nmemory-bound operators, batch {}, GB/s (milliseconds)\n{:>58} {:>16}\n", batch,
             "plain layout", "channels last");
  const auto line = [&](const std::string& name, const ContractPtr& contract,
                        std::vector<TensorInfo> inputs) {
    if (!settings.includes(name)) return;
    fmt::print("{:<42}", name);
    for (const Layout layout : {Layout::plain, Layout::channels_last}) {
      Runner runner(kernels, contract, inputs, layout);
      const double seconds = seconds_at_best(budget, [&] { runner.run(); });
      fmt::print(" {:6.1f} ({:7.2f})", runner.bytes() / seconds / 1e9, seconds * 1e3);
    }
    fmt::print("\n");
    std::fflush(stdout);
  };
  struct Pool {
    std::int64_t channels;
    std::int64_t extent;
    ops::Pool2dOptions options;
  };
  const ops::Pool2dOptions halves{.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true};
  const ops::Pool2dOptions same{.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1, 1, 1}};
  for (const Pool& pool : {Pool{64, 112, halves}, Pool{192, 56, halves}, Pool{480, 28, halves},
                           Pool{192, 28, same}, Pool{480, 14, same}, Pool{832, 7, same}}) {
    const TensorInfo image = f32({batch, pool.channels, pool.extent, pool.extent});
    const auto outputs = ops::MaxPool2d(pool.options).infer(std::vector{image});
    const std::array extents{pool.extent, pool.extent};
    const std::string name =
        fmt::format("{} x {} 3 x 3 / {}", pool.channels, pool.extent, pool.options.stride[0]);
    line("max_pool2d " + name, std::make_shared<ops::MaxPool2d>(pool.options), {image});
    line("max_pool2d_gradient " + name, std::make_shared<ops::MaxPool2dGradient>(pool.options, extents),
         outputs);
    line("average_pool2d " + name, std::make_shared<ops::AveragePool2d>(pool.options), {image});
    line("average_pool2d_gradient " + name,
         std::make_shared<ops::AveragePool2dGradient>(pool.options, extents), {outputs[0]});
  }
  line("global_average_pool2d 1024 x 7", std::make_shared<ops::GlobalAveragePool2d>(),
       {f32({batch, 1024, 7, 7})});
  line("global_average_pool2d_gradient 1024 x 7",
       std::make_shared<ops::GlobalAveragePool2dGradient>(std::array<std::int64_t, 2>{7, 7}),
       {f32({batch, 1024, 1, 1})});
  for (const auto& [channels, extent] : {std::pair<std::int64_t, std::int64_t>{64, 56}, {192, 56}}) {
    const TensorInfo image = f32({batch, channels, extent, extent});
    const std::string name = fmt::format("{} x {}", channels, extent);
    const ops::LocalResponseNormalizationOptions options;
    line("local_response_normalization " + name, std::make_shared<ops::LocalResponseNormalization>(options),
         {image});
    line("…_gradient " + name, std::make_shared<ops::LocalResponseNormalizationGradient>(options),
         {image, image});
  }
  for (const auto& [channels, extent] :
       {std::pair<std::int64_t, std::int64_t>{64, 112}, {192, 56}, {256, 28}, {512, 14}, {1024, 7}}) {
    const TensorInfo image = f32({batch, channels, extent, extent});
    const TensorInfo channel = f32({channels});
    const std::string name = fmt::format("{} x {}", channels, extent);
    const ops::BatchNormalizationOptions options;
    line("batch_normalization_training " + name, std::make_shared<ops::BatchNormalizationTraining>(options),
         {image, channel, channel});
    line("…_gradient " + name, std::make_shared<ops::BatchNormalizationTrainingGradient>(options),
         {image, image, channel, channel, channel});
  }
}

int run(int argc, char** argv) {
  Settings settings;
  if (argc > 1) settings.batch = std::atoll(argv[1]);
  if (argc > 2) settings.budget = std::atof(argv[2]);
  if (argc > 3) settings.only = argv[3];
  if (settings.batch < 1 || !(settings.budget >= 0)) {
    fmt::print(stderr, "usage: {} [batch] [seconds a measurement] [text]\n", argv[0]);
    return 2;
  }
  cpu::prepare_worker_thread();
  cpu::register_cpu_kernels(settings.kernels);
  fmt::print("multiply-add peak of one thread: {:.1f} GFLOP/s\n", peak_gigaflops(settings.budget));
  print_convolutions(settings);
  print_products(settings);
  print_bandwidth(settings);
  return 0;
}

}  // namespace
}  // namespace purine

int main(int argc, char** argv) {
  return purine::run(argc, argv);
}
#endif
