#include "purine/ops/update.h"

#include <cmath>

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/loops.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

/// The learning rate, which is f32 or has the dtype of the weight.
double read_rate(const KernelCall& call, int input, DType dtype) {
  return dtype == DType::f64 ? *call.input<double>(input) : static_cast<double>(*call.input<float>(input));
}

template <typename T>
std::unique_ptr<Kernel> bind_sgd(const BindContext& context) {
  const std::int64_t elements = context.input(0).shape.elements();
  const DType rate_dtype = context.input(2).dtype;
  const auto decay = static_cast<T>(context.as<ops::SgdUpdate>().options().weight_decay);
  const auto loop = update_loops<T>().sgd;
  const int parts = elementwise_parts(elements);
  return make_kernel(
      [=](const KernelCall& call) {
        const auto rate = static_cast<T>(read_rate(call, 2, rate_dtype));
        const auto [begin, end] = part_range(elements, call.part, parts);
        loop(call.input<T>(0) + begin, call.input<T>(1) + begin, rate, decay, call.output<T>(0) + begin,
             end - begin);
      },
      parts);
}

template <typename T>
std::unique_ptr<Kernel> bind_momentum(const BindContext& context) {
  const std::int64_t elements = context.input(0).shape.elements();
  const DType rate_dtype = context.input(3).dtype;
  const ops::MomentumOptions options = context.as<ops::MomentumUpdate>().options();
  const auto loop = options.nesterov ? update_loops<T>().nesterov : update_loops<T>().momentum;
  const int parts = elementwise_parts(elements);
  return make_kernel(
      [=](const KernelCall& call) {
        const auto [begin, end] = part_range(elements, call.part, parts);
        const typename UpdateLoops<T>::Tensors tensors = {
            .weight = call.input<T>(0) + begin,
            .first = call.input<T>(1) + begin,
            .second = nullptr,
            .gradient = call.input<T>(2) + begin,
            .new_weight = call.output<T>(0) + begin,
            .new_first = call.output<T>(1) + begin,
            .new_second = nullptr,
        };
        loop(tensors,
             {.learning_rate = static_cast<T>(read_rate(call, 3, rate_dtype)),
              .momentum = static_cast<T>(options.momentum),
              .weight_decay = static_cast<T>(options.weight_decay)},
             end - begin);
      },
      parts);
}

template <typename T>
std::unique_ptr<Kernel> bind_adam(const BindContext& context) {
  const std::int64_t elements = context.input(0).shape.elements();
  const DType rate_dtype = context.input(4).dtype;
  const ops::AdamOptions options = context.as<ops::AdamUpdate>().options();
  const auto loop = update_loops<T>().adam;
  const int parts = elementwise_parts(elements);
  return make_kernel(
      [=](const KernelCall& call) {
        const double rate = read_rate(call, 4, rate_dtype);
        const double t = static_cast<double>(*call.input<std::int64_t>(5)) + 1;
        const auto [begin, end] = part_range(elements, call.part, parts);
        const typename UpdateLoops<T>::Tensors tensors = {
            .weight = call.input<T>(0) + begin,
            .first = call.input<T>(1) + begin,
            .second = call.input<T>(2) + begin,
            .gradient = call.input<T>(3) + begin,
            .new_weight = call.output<T>(0) + begin,
            .new_first = call.output<T>(1) + begin,
            .new_second = call.output<T>(2) + begin,
        };
        loop(tensors,
             {.step = static_cast<T>(rate / (1 - std::pow(options.beta1, t))),
              .root = static_cast<T>(std::sqrt(1 - std::pow(options.beta2, t))),
              .shrink = static_cast<T>(options.decoupled ? 1 - rate * options.weight_decay : 1),
              .weight_decay = static_cast<T>(options.decoupled ? 0 : options.weight_decay),
              .beta1 = static_cast<T>(options.beta1),
              .beta2 = static_cast<T>(options.beta2),
              .rest1 = static_cast<T>(1 - options.beta1),
              .rest2 = static_cast<T>(1 - options.beta2),
              .epsilon = static_cast<T>(options.epsilon)},
             end - begin);
      },
      parts);
}

}  // namespace

void register_update(KernelRegistry& registry) {
  add_floating(registry, "sgd_update",
               [](const BindContext& context, auto zero) { return bind_sgd<decltype(zero)>(context); });
  add_floating(registry, "momentum_update",
               [](const BindContext& context, auto zero) { return bind_momentum<decltype(zero)>(context); });
  add_floating(registry, "adam_update",
               [](const BindContext& context, auto zero) { return bind_adam<decltype(zero)>(context); });
}

}  // namespace purine::cpu
