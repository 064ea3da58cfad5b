// A look at a whole set before training: what is in it, and what is broken.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace purine::data {

/// What check() found.
struct CheckReport {
  struct Finding {
    std::string path;
    std::string reason;
  };
  struct Class {
    std::string name;
    std::optional<std::int64_t> label = {};  ///< none where the training set has no such class
    std::int64_t images = 0;                 ///< broken ones too
    std::int64_t broken = 0;
  };
  /// A part of the set: `train`, `val`, …; a folder that holds classes itself has one without a name.
  struct Part {
    std::string name;
    std::int64_t images = 0;  ///< broken ones too
    /// By label, those without images too, then those that have no label.
    std::vector<Class> classes;
    std::vector<Finding> broken;                ///< sorted by path
    std::vector<Finding> harmless;              ///< defects that harm no pixel, sorted by path
    std::vector<std::string> ignored;           ///< files that are no images by their names
    std::vector<std::string> problems;          ///< what else keeps a training run from beginning
    std::vector<std::string> doubts;            ///< what looks wrong and may well be right (doubts_about)
    std::map<std::string, std::int64_t> modes;  ///< `JPEG ycc`, `PNG palette`, … of what is not broken
    std::map<std::pair<int, int>, std::int64_t> sizes;  ///< upright (height, width) of what is not broken
    std::int64_t turned = 0;                            ///< whose EXIF orientation is another than upright
  };

  std::string folder;
  std::string format;  ///< `idx`, `cifar10`, `cifar100` or `folder`
  std::vector<Part> parts;

  /// True where nothing is broken and there are no problems.
  bool ok() const;
  /// For people: a few lines a part, and one for each finding.
  std::string text() const;
  /// For programs: {"folder", "format", "ok", "parts": [{"name", "images", "classes": [{"name", "label",
  /// "images", "broken"}], "broken": [{"path", "reason"}], "harmless", "ignored", "problems", "doubts",
  /// "modes": {…}, "sizes": [{"height", "width", "images"}], "turned"}]}.
  std::string json() const;
};

struct CheckOptions {
  int threads = 0;  ///< 0: one for each core
  /// Told how many images are done of how many, after each, by one thread at a time.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

/// Looks at everything in a folder that a data source can read: decodes every image, in several threads, or
/// reads the files of an IDX or CIFAR set. A set that is damaged is reported, not thrown; only a folder that
/// can't be read, or holds no set, throws Error("check", …).
CheckReport check(const std::string& folder, const CheckOptions& options = {});

}  // namespace purine::data
