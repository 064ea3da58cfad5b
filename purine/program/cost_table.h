// What operators take on a machine, measured: what simulations and reports are made from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purine {
class Program;
}

namespace purine::program {

/// One operator of a program.
struct OperatorCost {
  std::string path;        ///< in the graph it was measured in
  std::string type;        ///< `conv2d`
  std::string attributes;  ///< as Contract::attributes
  std::string shapes;      ///< as Program::shapes: of inputs and outputs, with their layouts
  std::string algorithm;   ///< which of several the kernel ran; empty where there is one alone
  int parts = 1;           ///< which can run at the same time
  double seconds = 0;      ///< of one execution, all parts together: the time of one core
  double operations = 0;   ///< as its contract counts them
  double bytes = 0;
};

/// What is known of an operator before it runs. One that has nothing to do has no operations and bytes.
OperatorCost describe_operator(const Program& program, std::uint32_t op);

/// The machine that costs were measured on. Rates are those of one core while all workers compute.
struct MeasuredMachine {
  std::string processor;
  int workers = 0;
  double operations_per_second = 0;
  double bytes_per_second = 0;
};

/// Costs by operator, and the text of a file that holds them. The format is JSON:
///
///   {"format": "purine operator costs", "version": 1,
///    "machine": {"processor": "AMD EPYC", "workers": 2,
///                "operations_per_second": 1.1e11, "bytes_per_second": 9.0e9},
///    "operators": [
///     {"path": "lenet/conv1/conv2d", "type": "conv2d", "attributes": "stride=[1, 1] …",
///      "shapes": "f32[64, 1, 28, 28] … -> …", "algorithm": "direct", "parts": 4,
///      "seconds": 0.00102, "operations": 36864000, "bytes": 3147776}, …]}
///
/// with one operator a line. Seconds are those of one core, whatever number of cores shared the parts.
class CostTable {
 public:
  explicit CostTable(MeasuredMachine machine) : machine_(std::move(machine)) {}
  /// Reads the text of a file. Throws Error("cost table", …) that tells what is wrong with it.
  static CostTable parse(std::string_view text);
  std::string text() const;

  void add(OperatorCost cost);
  const MeasuredMachine& machine() const { return machine_; }
  const std::vector<OperatorCost>& operators() const { return operators_; }
  /// The seconds of an operator: of the one measured under its path, if type, attributes and shapes are the
  /// same; else the median of all that have the same type, attributes and shapes; nothing if there are none.
  std::optional<double> seconds(const OperatorCost& of) const;

 private:
  static std::string kind_of(const OperatorCost& cost);

  MeasuredMachine machine_;
  std::vector<OperatorCost> operators_;
  std::map<std::string, std::vector<std::size_t>>
      by_kind_;  // into operators_, by all that a kernel depends on
};

}  // namespace purine::program
