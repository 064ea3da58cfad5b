#include "purine/ops/loss.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/loops.h"
#include "purine/backend/cpu/softmax_row.h"
#include "purine/core/error.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

/// The labels of a batch, whatever their integer type.
class Labels {
 public:
  Labels(const BindContext& context, const ops::BatchShare& share)
      : type_(context.contract.type()),
        dtype_(context.input(1).dtype),
        samples_(context.input(0).shape[0]),
        classes_(context.input(0).shape[1]),
        first_sample_(share.first_sample) {}

  std::int64_t samples() const { return samples_; }
  std::int64_t classes() const { return classes_; }
  std::int64_t of(const KernelCall& call, std::int64_t sample) const {
    switch (dtype_) {
      case DType::u8:
        return call.input<std::uint8_t>(1)[sample];
      case DType::i32:
        return call.input<std::int32_t>(1)[sample];
      default:
        return call.input<std::int64_t>(1)[sample];
    }
  }
  /// Throws for the first label that is no class. Every part checks all, so that all tell the same one.
  void check(const KernelCall& call) const {
    for (std::int64_t sample = 0; sample < samples_; ++sample) {
      const std::int64_t label = of(call, sample);
      if (label < 0 || label >= classes_) {
        throw Error(type_, fmt::format("label {} of sample {} is outside 0..{}", label,
                                       first_sample_ + sample, classes_ - 1));
      }
    }
  }

 private:
  std::string type_;
  DType dtype_;
  std::int64_t samples_;
  std::int64_t classes_;
  std::int64_t first_sample_;
};

double divisor_or(std::int64_t divisor, std::int64_t count) {
  return static_cast<double>(divisor != 0 ? divisor : count);
}

/// Rows that are worth a part of their own, by the work of their exponentials.
int row_parts(const Labels& labels) {
  return static_cast<int>(std::clamp<std::int64_t>(
      labels.samples(), 1, elementwise_parts(4 * labels.samples() * labels.classes())));
}

template <typename T>
std::unique_ptr<Kernel> bind_cross_entropy(const BindContext& context) {
  const ops::BatchShare& share = context.as<ops::SoftmaxCrossEntropy>().share();
  const Labels labels(context, share);
  const double divisor = divisor_or(share.divisor, labels.samples());
  return make_kernel([=](const KernelCall& call) {
    labels.check(call);
    double total = 0;
    for (std::int64_t sample = 0; sample < labels.samples(); ++sample) {
      const T* logits = call.input<T>(0) + sample * labels.classes();
      const ExponentialSum sum = exponential_sum(logits, labels.classes());
      total += std::log(sum.total) - (static_cast<double>(logits[labels.of(call, sample)]) - sum.largest);
    }
    *call.output<T>(0) = static_cast<T>(total / divisor);
  });
}

template <typename T>
std::unique_ptr<Kernel> bind_cross_entropy_gradient(const BindContext& context) {
  const ops::BatchShare& share = context.as<ops::SoftmaxCrossEntropyGradient>().share();
  const Labels labels(context, share);
  const double divisor = divisor_or(share.divisor, labels.samples());
  const auto scale = arithmetic_loops<T>().multiply.vector_scalar;
  const int parts = row_parts(labels);
  return make_kernel(
      [=](const KernelCall& call) {
        labels.check(call);
        const auto factor = static_cast<T>(static_cast<double>(*call.input<T>(2)) / divisor);
        const std::int64_t end = labels.samples() * (call.part + 1) / parts;
        for (std::int64_t sample = labels.samples() * call.part / parts; sample < end; ++sample) {
          T* gradient = call.output<T>(0) + sample * labels.classes();
          softmax_row(call.input<T>(0) + sample * labels.classes(), gradient, labels.classes());
          gradient[labels.of(call, sample)] -= T{1};
          scale(gradient, factor, gradient, labels.classes());
        }
      },
      parts);
}

template <typename T>
std::unique_ptr<Kernel> bind_accuracy(const BindContext& context) {
  const auto& contract = context.as<ops::Accuracy>();
  const Labels labels(context, contract.share());
  const double divisor = divisor_or(contract.share().divisor, labels.samples());
  const int top = contract.top();
  return make_kernel([=](const KernelCall& call) {
    labels.check(call);
    std::int64_t correct = 0;
    for (std::int64_t sample = 0; sample < labels.samples(); ++sample) {
      const T* logits = call.input<T>(0) + sample * labels.classes();
      const std::int64_t label = labels.of(call, sample);
      const T own = logits[label];
      std::int64_t larger = 0;
      for (std::int64_t i = 0; i < label; ++i) larger += logits[i] >= own ? 1 : 0;
      for (std::int64_t i = label + 1; i < labels.classes(); ++i) larger += logits[i] > own ? 1 : 0;
      correct += !std::isnan(own) && larger < top ? 1 : 0;
    }
    *call.output<float>(0) = static_cast<float>(static_cast<double>(correct) / divisor);
  });
}

template <typename T>
std::unique_ptr<Kernel> bind_squared_error(const BindContext& context) {
  const std::int64_t elements = context.input(0).shape.elements();
  const double divisor = divisor_or(context.as<ops::MeanSquaredError>().divisor(), elements);
  const auto loop = reduce_loops<T>().squared_distance;
  return make_kernel([=](const KernelCall& call) {
    *call.output<T>(0) = static_cast<T>(loop(call.input<T>(0), call.input<T>(1), elements) / divisor);
  });
}

template <typename T>
std::unique_ptr<Kernel> bind_squared_error_gradient(const BindContext& context) {
  const std::int64_t elements = context.input(0).shape.elements();
  const double divisor = divisor_or(context.as<ops::MeanSquaredErrorGradient>().divisor(), elements);
  const auto loop = arithmetic_loops<T>().scaled_difference;
  const int parts = elementwise_parts(elements);
  return make_kernel(
      [=](const KernelCall& call) {
        const auto factor = static_cast<T>(2 * static_cast<double>(*call.input<T>(2)) / divisor);
        const auto [begin, end] = part_range(elements, call.part, parts);
        loop(call.input<T>(0) + begin, call.input<T>(1) + begin, factor, call.output<T>(0) + begin,
             end - begin);
      },
      parts);
}

}  // namespace

void register_loss(KernelRegistry& registry) {
  add_floating(registry, "softmax_cross_entropy", [](const BindContext& context, auto zero) {
    return bind_cross_entropy<decltype(zero)>(context);
  });
  add_floating(registry, "softmax_cross_entropy_gradient", [](const BindContext& context, auto zero) {
    return bind_cross_entropy_gradient<decltype(zero)>(context);
  });
  add_floating(registry, "accuracy",
               [](const BindContext& context, auto zero) { return bind_accuracy<decltype(zero)>(context); });
  add_floating(registry, "mean_squared_error", [](const BindContext& context, auto zero) {
    return bind_squared_error<decltype(zero)>(context);
  });
  add_floating(registry, "mean_squared_error_gradient", [](const BindContext& context, auto zero) {
    return bind_squared_error_gradient<decltype(zero)>(context);
  });
}

}  // namespace purine::cpu
