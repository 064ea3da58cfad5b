#include "purine/train/job_file.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "purine/train/job_keys.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace purine::train {
namespace {

using test::error_text;

constexpr std::string_view complete = R"([model]
name = "lenet"

[data]
folder = "/data/set"
)";

std::string with(std::string_view more) {
  return std::string(complete) + std::string(more);
}

std::string mistake(std::string_view text) {
  return error_text([&] { parse_job(text, "job.toml"); });
}

LoadedJob with_setting(const std::string& assignment) {
  return parse_job(complete, "job.toml", std::vector<JobSetting>{{assignment, "--set " + assignment}});
}

std::string setting_mistake(const std::string& assignment) {
  return error_text([&] { with_setting(assignment); });
}

TEST(JobFileTest, ReadsEveryTypeOfKey) {
  const LoadedJob loaded = parse_job(R"(
[model]
name = "googlenet"
classes = 12

[data]
folder = "a \"quoted\" folder"
batch = 32
mean = [0.485, 0.456, 0.406]
deviation = 0.5       # one for all channels
flip = 1              # an integer where a number is meant
class_names = ["a", "b,c"]

[optimizer]
learning_rate = 1e-3
)",
                                     "job.toml");
  const Job& job = loaded.job;
  EXPECT_EQ(job.model.name, "googlenet");
  EXPECT_EQ(job.model.classes, 12);
  EXPECT_EQ(job.data.folder, "a \"quoted\" folder");
  EXPECT_EQ(job.data.batch, 32);
  EXPECT_EQ(job.data.mean, (std::vector<double>{0.485, 0.456, 0.406}));
  EXPECT_EQ(job.data.deviation, std::vector<double>{0.5});
  EXPECT_EQ(job.data.flip, 1.0);
  EXPECT_EQ(job.data.class_names, (std::vector<std::string>{"a", "b,c"}));
  EXPECT_EQ(job.optimizer.learning_rate, 1e-3);
  EXPECT_EQ(job.optimizer.momentum, Job().optimizer.momentum) << "what is left out has its default";
  EXPECT_EQ(loaded.origins.at("data.batch"), "job.toml:8");
  EXPECT_FALSE(loaded.origins.contains("optimizer.momentum"));
}

TEST(JobFileTest, DottedKeysAreSections) {
  EXPECT_EQ(parse_job("model.name = \"lenet\"\ndata.folder = \"d\"\ndata.batch = 7\n", "j").job.data.batch,
            7);
}

TEST(JobFileTest, UnknownKeyNamesLineAndNearest) {
  EXPECT_EQ(
      mistake(with("[optimizer]\nlearning_rat = 0.1\n")),
      "[job] job.toml:7: unknown key 'learning_rat' in [optimizer]; hint: did you mean 'learning_rate'?");
  EXPECT_EQ(mistake(with("[train]\nepoks = 3\n")),
            "[job] job.toml:7: unknown key 'epoks' in [train]; hint: did you mean 'epochs'?");
  EXPECT_EQ(mistake(with("[optimizer]\nlr = 3\n")),
            "[job] job.toml:7: unknown key 'lr' in [optimizer]; hint: did you mean 'learning_rate'?");
  EXPECT_EQ(mistake(with("[checkpoint]\nmomentum = 0.9\n")),
            "[job] job.toml:7: unknown key 'momentum' in [checkpoint]; hint: 'momentum' belongs in "
            "[optimizer]");
  EXPECT_EQ(
      mistake(with("[optimizer]\nsteps = 3\n")),
      "[job] job.toml:7: unknown key 'steps' in [optimizer]; hint: 'steps' belongs in [train] or [trace]");
  EXPECT_EQ(
      mistake(with("[trace]\nxyz = 1\n")),
      "[job] job.toml:7: unknown key 'xyz' in [trace]; hint: its keys are steps, first_step, megabytes");
}

TEST(JobFileTest, UnknownSection) {
  EXPECT_EQ(mistake(with("[optimiser]\nname = \"sgd\"\n")),
            "[job] job.toml:6: unknown section [optimiser]; hint: did you mean [optimizer]?");
  EXPECT_EQ(mistake(with("[quantum]\nmesh = 2\n")),
            "[job] job.toml:6: unknown section [quantum]; hint: the sections are model, data, optimizer, "
            "train, parallel, emulated, checkpoint, trace");
  EXPECT_EQ(mistake("epochs = 3\n" + std::string(complete)),
            "[job] job.toml:1: key 'epochs' is outside of all sections; hint: it belongs in [train]");
  EXPECT_EQ(
      mistake("name = \"lenet\"\n" + std::string(complete)),
      "[job] job.toml:1: key 'name' is outside of all sections; hint: it belongs in [model] or [optimizer]");
  EXPECT_EQ(mistake("quantum = 3\n" + std::string(complete)),
            "[job] job.toml:1: key 'quantum' is outside of all sections; hint: the sections are model, data, "
            "optimizer, train, parallel, emulated, checkpoint, trace");
  EXPECT_EQ(mistake("[[model]]\nname = \"lenet\"\n"),
            "[job] job.toml:1: [[model]] is a list of sections; hint: write [model], once");
}

TEST(JobFileTest, WrongTypeNamesBoth) {
  EXPECT_EQ(mistake("[model]\nname = \"lenet\"\n[data]\nfolder = \"d\"\nbatch = \"64\"\n"),
            "[job] job.toml:5: data.batch must be an integer, got \"64\"; hint: leave the quotes out");
  EXPECT_EQ(mistake("[model]\nname = \"lenet\"\n[data]\nfolder = \"d\"\nbatch = 64.0\n"),
            "[job] job.toml:5: data.batch must be an integer, got 64.0");
  EXPECT_EQ(mistake("[model]\nname = 5\n"),
            "[job] job.toml:2: model.name must be text, got 5; hint: put it in quotes");
  EXPECT_EQ(mistake(with("[checkpoint]\nkeep_best = 1\n")),
            "[job] job.toml:7: checkpoint.keep_best must be true or false, got 1");
  EXPECT_EQ(mistake(with("class_names = [\"a\", 1]\n")),
            "[job] job.toml:6: data.class_names must be a list of texts, got a list");
  EXPECT_EQ(mistake(with("mean = [0.1, \"x\"]\n")),
            "[job] job.toml:6: data.mean must be a list of numbers, got a list");
  EXPECT_EQ(mistake(with("[optimizer]\nmomentum = {a = 1}\n")),
            "[job] job.toml:7: optimizer.momentum must be a number, got a table");
}

TEST(JobFileTest, OutOfRange) {
  EXPECT_EQ(mistake(with("batch = 0\n")), "[job] job.toml:6: data.batch must be 1 to 1048576, got 0");
  EXPECT_EQ(mistake(with("[optimizer]\nlearning_rate = 0.0\n")),
            "[job] job.toml:7: optimizer.learning_rate must be above 0, got 0.0");
  EXPECT_EQ(mistake(with("[optimizer]\nmomentum = 1\n")),
            "[job] job.toml:7: optimizer.momentum must be at least 0 and below 1, got 1.0");
  EXPECT_EQ(mistake(with("[optimizer]\nclip_norm = nan\n")),
            "[job] job.toml:7: optimizer.clip_norm must be a finite number, got nan");
  EXPECT_EQ(mistake(with("mean = [inf]\n")), "[job] job.toml:6: data.mean must be finite numbers, got [inf]");
  EXPECT_EQ(mistake(with("mean = [1, 2]\n")),
            "[job] job.toml:6: data.mean must be a list of numbers, none, 1 or 3 of them; got [1.0, 2.0]");
  EXPECT_EQ(mistake(with("deviation = [1, 0, 1]\n")),
            "[job] job.toml:6: data.deviation must be numbers each above 0, got [1.0, 0.0, 1.0]");
  EXPECT_EQ(mistake(with("[optimizer]\nname = \"momentun\"\n")),
            "[job] job.toml:7: optimizer.name must be one of sgd, momentum, nesterov, adam, adamw; got "
            "\"momentun\"; hint: did you mean \"momentum\"?");
}

TEST(JobFileTest, AModelThatDoesNotExist) {
  const std::string text = mistake("[model]\nname = \"lenett\"\n");
  EXPECT_TRUE(text.starts_with("[job] job.toml:2: model.name must be one of alexnet, ")) << text;
  EXPECT_TRUE(text.ends_with("; got \"lenett\"; hint: did you mean \"lenet\"?")) << text;
}

TEST(JobFileTest, TheFirstMistakeOfTheFileIsReported) {
  EXPECT_EQ(mistake("[model]\nname = \"lenet\"\nzebra = 1\naardvark = 2\n[absent]\n"),
            "[job] job.toml:3: unknown key 'zebra' in [model]; hint: its keys are name, classes");
}

TEST(JobFileTest, NotToml) {
  const std::string text = mistake("[model]\nname = \n");
  EXPECT_TRUE(text.starts_with("[job] job.toml:2: not TOML: ")) << text;
  EXPECT_TRUE(mistake(with("[data]\nbatch = 3\n")).starts_with("[job] job.toml:6: not TOML: "))
      << "a section that is there twice";
}

TEST(JobFileTest, RequiredKeys) {
  EXPECT_EQ(mistake(""),
            "[job] job.toml: model.name is missing; hint: add name = \"…\" in [model], or give --set "
            "model.name=…");
  EXPECT_EQ(mistake("[model]\nname = \"lenet\"\n[data]\nfolder = \"\"\n"),
            "[job] job.toml:4: data.folder must not be empty");
}

TEST(JobFileTest, KeysThatDoNotGoTogether) {
  EXPECT_EQ(mistake(with("padding = 4\n")),
            "[job] job.toml:6: data.padding does not go with crop = \"none\"; hint: set crop = \"random\"");
  EXPECT_EQ(mistake(with("crop_size = 4\n")),
            "[job] job.toml:6: data.crop_size does not go with crop = \"none\"; hint: set crop = \"center\"");
  EXPECT_EQ(mistake(with("format = \"folder\"\n")),
            "[job] job.toml: data.crop_size is needed with format = \"folder\", whose images differ in size; "
            "hint: set crop and crop_size");
  EXPECT_EQ(mistake(with("crop = \"random_resized\"\ncrop_size = 8\nresize = 9\n")),
            "[job] job.toml:8: data.resize does not go with crop = \"random_resized\"; hint: "
            "evaluation_resize sets the size for evaluation");
  EXPECT_EQ(mistake(with("crop = \"random_resized\"\n")),
            "[job] job.toml: data.crop_size is needed with crop = \"random_resized\"");
  EXPECT_EQ(mistake(with("crop = \"random_resized\"\ncrop_size = 8\narea = [0.5, 0.1]\n")),
            "[job] job.toml:8: data.area must be the least, then the greatest");
  EXPECT_EQ(mistake(with("channels = 2\n")), "[job] job.toml:6: data.channels must be 0, 1 or 3, got 2");
}

TEST(JobFileTest, KeysThatMeanNothing) {
  EXPECT_EQ(
      mistake(with("labels = \"coarse\"\n")),
      "[job] job.toml:6: data.labels does not go with format = \"idx\"; hint: set format = \"cifar100\"");
  EXPECT_EQ(
      mistake(with("on_bad_image = \"skip\"\n")),
      "[job] job.toml:6: data.on_bad_image does not go with format = \"idx\"; hint: set format = \"folder\"");
  EXPECT_EQ(mistake(with("[optimizer]\nname = \"sgd\"\nmomentum = 0.9\n")),
            "[job] job.toml:8: optimizer.momentum does not go with name = \"sgd\"; hint: it goes with name = "
            "\"momentum\" or \"nesterov\"")
      << "though it is the default";
  EXPECT_NO_THROW(parse_job(with("[optimizer]\nname = \"sgd\"\nmomentum = 0\n"), "job.toml"))
      << "none of it goes with all";
  EXPECT_EQ(
      mistake(with("[optimizer]\nbeta2 = 0.9\n")),
      "[job] job.toml:7: optimizer.beta2 does not go with name = \"momentum\"; hint: it goes with name = "
      "\"adam\" or \"adamw\"");
  EXPECT_EQ(mistake(with("[optimizer]\nschedule = \"cosine\"\npower = 2\n")),
            "[job] job.toml:8: optimizer.power does not go with schedule = \"cosine\"; hint: set schedule = "
            "\"polynomial\"");
  EXPECT_EQ(setting_mistake("optimizer.step_factor=0.5"),
            "[job] --set optimizer.step_factor=0.5: optimizer.step_factor does not go with schedule = "
            "\"constant\"; hint: set schedule = \"step\"");
}

TEST(JobFileTest, ASettingLeavesOutWhatMeansNothingWithIt) {
  const std::string text =
      with("crop = \"random\"\npadding = 4\n[optimizer]\nname = \"nesterov\"\nmomentum = 0.8\n");
  const std::vector<JobSetting> settings = {{"optimizer.name=sgd", "--set"}, {"data.crop=center", "--set"}};
  const LoadedJob loaded = parse_job(text, "job.toml", settings);
  EXPECT_EQ(loaded.job.data.padding, 0);
  EXPECT_EQ(loaded.job.optimizer.momentum, Job().optimizer.momentum);
  EXPECT_FALSE(loaded.origins.contains("optimizer.momentum"));
  const std::vector<JobSetting> both = {{"optimizer.name=sgd", "--set"}, {"optimizer.momentum=0.7", "--set"}};
  EXPECT_TRUE(error_text([&] {
                parse_job(text, "job.toml", both);
              }).starts_with("[job] --set: optimizer.momentum does not go"));
}

TEST(JobFileTest, NumbersThatAreNotFinite) {
  EXPECT_EQ(mistake(with("[optimizer]\nlearning_rate = inf\n")),
            "[job] job.toml:7: optimizer.learning_rate must be a finite number, got inf");
  EXPECT_EQ(mistake(with("flip = nan\n")), "[job] job.toml:6: data.flip must be a finite number, got nan");
  EXPECT_EQ(mistake(with("deviation = [inf]\n")),
            "[job] job.toml:6: data.deviation must be finite numbers, got [inf]");
  EXPECT_EQ(mistake(with("mean = [nan]\n")), "[job] job.toml:6: data.mean must be finite numbers, got [nan]");
}

TEST(JobFileTest, SettingsCountAfterTheFile) {
  EXPECT_EQ(with_setting("data.batch=8").job.data.batch, 8);
  EXPECT_EQ(with_setting("data.folder=/a b/c=d").job.data.folder, "/a b/c=d");
  EXPECT_EQ(with_setting("data.folder=\"/quoted\\ttext\"").job.data.folder, "/quoted\ttext");
  EXPECT_EQ(with_setting("data.mean=0.1,0.2,0.3").job.data.mean, (std::vector<double>{0.1, 0.2, 0.3}));
  EXPECT_EQ(with_setting("data.mean=[]").job.data.mean, std::vector<double>{});
  EXPECT_EQ(with_setting("data.class_names=a b,c").job.data.class_names,
            (std::vector<std::string>{"a b", "c"}));
  EXPECT_EQ(with_setting("data.batch = 8").job.data.batch, 8);
  EXPECT_EQ(with_setting("data.folder  =  a b ").job.data.folder, "a b ");
  EXPECT_EQ(with_setting("data.folder= a").job.data.folder, " a");
  EXPECT_TRUE(with_setting("checkpoint.keep_best=true").job.checkpoint.keep_best);
  EXPECT_EQ(with_setting("optimizer.learning_rate=1e-4").job.optimizer.learning_rate, 1e-4);
  const std::vector<JobSetting> both = {{"data.batch=8", "--set"}, {"data.batch=9", "--set"}};
  EXPECT_EQ(parse_job(complete, "job.toml", both).job.data.batch, 9);
  const std::vector<JobSetting> required = {{"model.name=lenet", "--set"}, {"data.folder=d", "--set"}};
  EXPECT_EQ(parse_job("", "job.toml", required).job.model.name, "lenet");
}

TEST(JobFileTest, SettingsAreCheckedAlike) {
  EXPECT_EQ(setting_mistake("optimizer.learning_rat=1"),
            "[job] --set optimizer.learning_rat=1: unknown key 'learning_rat' in [optimizer]; hint: did you "
            "mean 'learning_rate'?");
  EXPECT_EQ(setting_mistake("dta.batch=1"),
            "[job] --set dta.batch=1: unknown section [dta]; hint: did you mean [data]?");
  EXPECT_EQ(setting_mistake("data.batch=many"),
            "[job] --set data.batch=many: data.batch must be an integer, got many");
  EXPECT_EQ(
      setting_mistake("data.mean=0.1,0.2"),
      "[job] --set data.mean=0.1,0.2: data.mean must be a list of numbers, none, 1 or 3 of them; got [0.1, "
      "0.2]");
  EXPECT_EQ(
      setting_mistake("data.batch = "),
      "[job] --set data.batch = : data.batch must be an integer, got nothing; hint: write a value behind "
      "the =");
  EXPECT_EQ(
      setting_mistake("data.ratio=1e-300,1"),
      "[job] --set data.ratio=1e-300,1: data.ratio must be numbers each 0.001 to 1000, got [1e-300, 1.0]");
  EXPECT_EQ(
      setting_mistake("data.folder=a\xff"),
      "[job] --set data.folder=a\xff: data.folder must be UTF-8 text; hint: a job's file can hold nothing "
      "else");
  EXPECT_EQ(
      setting_mistake("data.class_names=a,\xff"),
      "[job] --set data.class_names=a,\xff: data.class_names must be UTF-8 texts; hint: a job's file can "
      "hold nothing else");
  EXPECT_EQ(setting_mistake("data.batch="),
            "[job] --set data.batch=: data.batch must be an integer, got nothing; hint: write a value behind "
            "the =");
  EXPECT_EQ(setting_mistake("data.class_names=[a,b]"),
            "[job] --set data.class_names=[a,b]: data.class_names must be a list of texts, got [a,b]; hint: "
            "write data.class_names=a,b or, for texts with commas, 'data.class_names=[\"a\", \"b\"]'");
  EXPECT_EQ(setting_mistake("data.mean=[0.5;1]"),
            "[job] --set data.mean=[0.5;1]: data.mean must be a list of numbers, got [0.5;1]; hint: write "
            "data.mean=0.5,1");
  EXPECT_EQ(
      setting_mistake("data.folder=\"a"),
      "[job] --set data.folder=\"a: data.folder must be text, got \"a; hint: close the quotes, or leave "
      "them out");
  EXPECT_EQ(setting_mistake("data.batch=-1"),
            "[job] --set data.batch=-1: data.batch must be 1 to 1048576, got -1");
  EXPECT_EQ(setting_mistake("data.batch"),
            "[job] --set data.batch: not a setting; hint: write section.key=value");
  EXPECT_EQ(setting_mistake("batch=1"), "[job] --set batch=1: not a setting; hint: write section.key=value");
  EXPECT_EQ(setting_mistake("data.padding=2"),
            "[job] --set data.padding=2: data.padding does not go with crop = \"none\"; hint: set crop = "
            "\"random\"");
}

TEST(JobFileTest, AFileThatIsNotThere) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "none.toml";
  EXPECT_EQ(error_text([&] { read_job(path); }),
            "[job] " + path + ": cannot open: No such file or directory");
}

TEST(JobFileTest, EveryKeySurvivesBeingWrittenAndRead) {
  // Another value than the default for every key, whatever keys there are.
  Job job;
  for (const JobKey& key : job_keys()) {
    JobValue value = key.default_value();
    if (auto* boolean = std::get_if<bool>(&value)) *boolean = !*boolean;
    if (auto* integer = std::get_if<std::int64_t>(&value)) *integer += 3;
    if (auto* number = std::get_if<double>(&value)) *number = (*number + 0.1) / 3;
    if (auto* text = std::get_if<std::string>(&value)) {
      *text = key.choices.empty() ? "tab\there, \"quoted\" \\ and\nline \x01 ü" : key.choices.back();
    }
    if (auto* texts = std::get_if<std::vector<std::string>>(&value)) *texts = {"a \"quoted\" one", ""};
    if (std::holds_alternative<std::vector<double>>(value)) value = std::vector<double>{0.1, 1.0 / 3};
    key.member.set(job, value);
    EXPECT_EQ(key.member.get(job), value) << key.path();
  }
  job.data.mean = {0.1, 1.0 / 3, 1};
  job.data.deviation = {};
  job.data.channels = 3;
  job.parallel = {.scheme = "tensor",
                  .devices = "emu:0-3",
                  .mesh = "data=2,model=2",
                  .shares = {3, 1},
                  .all_reduce = "tree",
                  .gradient_format = "bf16",
                  .output_layers = {"a \"quoted\" one", ""},
                  .input_layers = {"fc2"},
                  .synchronized_batch_normalization = true};
  std::set<std::string> written;
  const auto check = [&](Job changed) {
    if (changed.data.crop == "none") changed.data.format = "idx";  // a folder's images need a crop
    for (const JobKey& key : job_keys()) {
      if (!key.counts(changed)) key.member.set(changed, key.default_value());
    }
    EXPECT_EQ(parse_job(job_text(changed), "job.toml").job, changed) << job_text(changed);
    for (const auto& [path, origin] : parse_job(job_text(changed), "job.toml").origins) written.insert(path);
  };
  check(job);
  for (const JobKey& key : job_keys()) {
    if (!key.only_with) continue;
    Job changed = job;
    find_job_key(key.only_with->key)->member.set(changed, JobValue(key.only_with->values.front()));
    check(changed);
  }
  EXPECT_EQ(written.size(), job_keys().size()) << "each key in one of them";
  const Job defaults{.model = {.name = "lenet"}, .data = {.folder = "d"}};
  EXPECT_EQ(parse_job(job_text(defaults), "job.toml").job, defaults) << job_text(defaults);
}

TEST(JobFileTest, IdentityLeavesOutWhatChangesNoResult) {
  Job job = parse_job(complete, "job.toml").job;
  const std::string identity = job_identity(job);
  job.train.workers = 4;
  job.train.run_folder = "elsewhere";
  job.train.epochs = 9;
  job.data.folder = "/moved";
  job.checkpoint.keep = 7;
  job.trace.steps = 5;
  EXPECT_EQ(job_identity(job), identity);
  job.train.seed = 2;
  EXPECT_NE(job_identity(job), identity);
  job.train.seed = 1;
  job.optimizer.schedule = "cosine";
  const std::string cosine = job_identity(job);
  job.train.epochs = 10;
  EXPECT_NE(job_identity(job), cosine) << "the schedule ends with the run";
}

TEST(JobFileTest, ResumingNamesWhatChanged) {
  const Job started = parse_job(complete, "job.toml").job;
  EXPECT_NO_THROW(check_resumable(started, with_setting("train.epochs=9")));
  EXPECT_NO_THROW(check_resumable(started, with_setting("checkpoint.every_steps=9")));
  EXPECT_EQ(error_text([&] { check_resumable(started, with_setting("optimizer.momentum=0.8")); }),
            "[job] --set optimizer.momentum=0.8: optimizer.momentum was 0.9 when the run was started, and is "
            "0.8 now; hint: resume with the same value, or start another run in another run folder");
  EXPECT_EQ(error_text([&] { check_resumable(started, parse_job(with("batch = 32\n"), "job.toml")); }),
            "[job] job.toml:6: data.batch was 64 when the run was started, and is 32 now; hint: resume with "
            "the same value, or start another run in another run folder");

  Job cosine = started;
  cosine.optimizer.schedule = "cosine";
  LoadedJob longer = with_setting("train.epochs=9");
  longer.job.optimizer.schedule = "cosine";
  EXPECT_EQ(
      error_text([&] { check_resumable(cosine, longer); }),
      "[job] --set train.epochs=9: train.epochs was 1 when the run was started, and is 9 now; hint: the "
      "cosine schedule ends with the run; resume with the same value, or start another run in another "
      "run folder");
}

TEST(JobKeysTest, EachKeyIsComplete) {
  std::vector<std::string> sections;
  for (const JobKey& key : job_keys()) {
    EXPECT_EQ(find_job_key(key.section, key.name), &key) << key.path() << " is there twice";
    EXPECT_TRUE(key.help.ends_with('.')) << key.path();
    EXPECT_EQ(key.help.find('|'), std::string::npos) << key.path() << " would break its table";
    if (!key.required) {
      EXPECT_FALSE(key.check(key.default_value())) << key.path() << " has a default that may not be";
    }
    if (sections.empty() || sections.back() != key.section) sections.push_back(key.section);
  }
  EXPECT_EQ(sections, (std::vector<std::string>{"model", "data", "optimizer", "train", "parallel", "emulated",
                                                "checkpoint", "trace"}));
}

TEST(JobKeysTest, HelpTellsEveryKeyWithinTheColumns) {
  const std::string help = job_help(80);
  for (const JobKey& key : job_keys()) {
    const bool told = help.find("\n  " + key.name + " ") != std::string::npos ||
                      help.find("\n  " + key.name + "\n") != std::string::npos;  // a long one
    EXPECT_TRUE(told) << key.path();
  }
  std::size_t begin = 0;
  while (begin < help.size()) {
    const std::size_t end = help.find('\n', begin);
    EXPECT_LE(end - begin, 80u) << help.substr(begin, end - begin);
    begin = end + 1;
  }
}

}  // namespace
}  // namespace purine::train
