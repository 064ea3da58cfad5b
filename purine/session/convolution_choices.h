// Which algorithm computes which convolution on this machine: measured once, and kept in a file.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

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

  /// May be called by several threads at a time, which then measure different convolutions.
  cpu::ConvolutionAlgorithm choose(cpu::ConvolutionPass pass, const cpu::ConvolutionProblem& problem);
  /// Writes the file, if something was measured since, and gives back the memory that measuring took. While
  /// nobody chooses.
  void save();
  /// How many were measured by this object.
  int measured() const { return measured_; }

 private:
  using Memory = std::unique_ptr<cpu::MeasurementMemory>;
  Memory take_memory();
  void end_measuring(const std::string& convolution, Memory memory);

  std::filesystem::path file_;
  std::string machine_;
  std::mutex mutex_;  // of all below
  std::condition_variable ended_;
  std::map<std::string, std::string> choices_;  // names of algorithms, by cpu::describe
  std::set<std::string> under_way_;             // by some thread
  std::vector<Memory> memories_;                // that no thread measures in
  bool changed_ = false;
  int measured_ = 0;
};

}  // namespace purine
