#include "purine/backend/cpu/machine_probe.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <thread>
#include <vector>

#include "purine/backend/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "purine/backend/cpu/machine_probe.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace purine::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Each of the 12 sums depends on itself alone: enough of them to hide the latency of a multiply-add.
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

/// sum = one + other: two arrays are read and one is written, as most operators on memory do.
void add_arrays(const float* one, const float* other, float* sum, std::int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, one + i), hn::LoadU(d, other + i)), d, sum + i);
  }
}

}  // namespace
}  // namespace purine::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace purine::cpu {

HWY_EXPORT(multiply_add);
HWY_EXPORT(add_arrays);

namespace {

using Clock = std::chrono::steady_clock;

/// The median rate of `measure`, which returns how much it did, called again and again for some seconds.
template <typename Measure>
double median_rate(double seconds, Measure measure) {
  std::vector<double> rates;
  const Clock::time_point first = Clock::now();
  Clock::time_point now = first;
  while (rates.size() < 3 || std::chrono::duration<double>(now - first).count() < seconds) {
    const Clock::time_point begin = now;
    const double amount = measure();
    now = Clock::now();
    rates.push_back(amount / std::chrono::duration<double>(now - begin).count());
  }
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

/// The mean over threads that all run `rate` at the same time.
template <typename Rate>
double mean_of_threads(int threads, Rate rate) {
  std::vector<double> rates(static_cast<std::size_t>(threads));
  std::vector<std::jthread> running;
  running.reserve(rates.size());
  for (double& of_thread : rates) running.emplace_back([&of_thread, &rate] { of_thread = rate(); });
  running.clear();
  double sum = 0;
  for (const double of_thread : rates) sum += of_thread;
  return sum / threads;
}

}  // namespace

double run_multiply_adds(int rounds, float* result) {
  return HWY_DYNAMIC_DISPATCH(multiply_add)(rounds, result);
}

CoreRates measure_core_rates(int threads, double seconds) {
  CoreRates rates;
  rates.operations_per_second = mean_of_threads(threads, [&] {
    volatile float used = 0;
    return median_rate(seconds / 2, [&] {
      float result = 0;
      const double operations = run_multiply_adds(20'000, &result);
      used = result;
      return operations;
    });
  });
  rates.bytes_per_second = mean_of_threads(threads, [&] {
    constexpr std::int64_t count = 8 << 20;  // three arrays of 32 MiB: more than caches hold
    std::vector<float> one(count, 1.0F);
    std::vector<float> other(count, 2.0F);
    std::vector<float> sum(count, 0.0F);
    return median_rate(seconds / 2, [&] {
      HWY_DYNAMIC_DISPATCH(add_arrays)(one.data(), other.data(), sum.data(), count);
      return 3.0 * static_cast<double>(count) * sizeof(float);
    });
  });
  return rates;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace purine::cpu
#endif
