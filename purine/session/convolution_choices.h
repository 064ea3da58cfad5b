// Which algorithm computes which convolution on this machine: measured once, and kept in a file.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "purine/backend/cpu/convolution_choice.h"
#include "purine/backend/cpu/convolution_measurement.h"

namespace purine {

/// Choices by what a convolution's time depends on. A new one is measured; those that were measured before,
/// in this process or another one, come from a file. Whatever is wrong with the file, or with its folder,
/// only means that more has to be measured: it is one of a cache.
///
/// Several processes may use one file at the same time. It is replaced as a whole, together with what others
/// have added since it was read.
class ConvolutionChoices {
 public:
  /// With an empty path nothing is read or kept.
  explicit ConvolutionChoices(std::filesystem::path file);

  /// `purine/convolutions.json` in the user's folder for caches (XDG_CACHE_HOME, else ~/.cache). PURINE_CACHE
  /// in the environment names another folder, or is `off`: then, and where there is no home, the path is
  /// empty.
  static std::filesystem::path default_file();

  cpu::ConvolutionAlgorithm choose(cpu::ConvolutionPass pass, const cpu::ConvolutionProblem& problem);
  /// Writes the file, if something was measured since, and gives back the memory that measuring took.
  void save();
  /// How many were measured by this object.
  int measured() const { return measured_; }

 private:
  std::filesystem::path file_;
  std::string machine_;
  std::map<std::string, std::string> choices_;  // names of algorithms, by cpu::describe
  cpu::MeasurementMemory memory_;
  bool changed_ = false;
  int measured_ = 0;
};

}  // namespace purine
