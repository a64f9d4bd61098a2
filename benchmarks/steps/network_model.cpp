#include "benchmarks/steps/network_model.hpp"

#include <array>
#include <numeric>

namespace elastic::bench {

namespace {

/// Collects parameters layer by layer.
class Layers {
 public:
  void tensor(const std::string& name, std::size_t count) { parameters_.push_back({name, count}); }
  void linear(const std::string& name, std::size_t in, std::size_t out) {
    tensor(name + ".weight", in * out);
    tensor(name + ".bias", out);
  }
  /// A batch or layer normalization: a scale and a shift for each channel.
  void norm(const std::string& name, std::size_t channels) {
    tensor(name + ".weight", channels);
    tensor(name + ".bias", channels);
  }
  /// A convolution and its batch normalization, which makes a bias unnecessary.
  void convolution_with_norm(const std::string& name, std::size_t in, std::size_t out,
                             std::size_t side) {
    tensor(name + ".conv.weight", in * out * side * side);
    norm(name + ".bn", out);
  }
  void convolution(const std::string& name, std::size_t in, std::size_t out, std::size_t side) {
    linear(name, in * side * side, out);
  }
  std::vector<Parameter> take() { return std::move(parameters_); }

 private:
  std::vector<Parameter> parameters_;
};

/// He et al. 2015, table 1; ImageNet's 1000 classes.
std::vector<Parameter> resnet50() {
  struct Stage {
    std::size_t blocks;
    std::size_t width;  // of the 3x3 convolutions
  };
  constexpr std::array<Stage, 4> kStages{{{3, 64}, {4, 128}, {6, 256}, {3, 512}}};
  constexpr std::size_t kExpansion = 4;
  Layers layers;
  layers.convolution_with_norm("stem", 3, 64, 7);
  std::size_t channels = 64;
  for (std::size_t stage = 0; stage < kStages.size(); ++stage) {
    const std::size_t width = kStages[stage].width;
    for (std::size_t block = 0; block < kStages[stage].blocks; ++block) {
      const std::string name =
          "layer" + std::to_string(stage + 1) + "." + std::to_string(block) + ".";
      layers.convolution_with_norm(name + "1", channels, width, 1);
      layers.convolution_with_norm(name + "2", width, width, 3);
      layers.convolution_with_norm(name + "3", width, width * kExpansion, 1);
      if (block == 0) {
        layers.convolution_with_norm(name + "downsample", channels, width * kExpansion, 1);
      }
      channels = width * kExpansion;
    }
  }
  layers.linear("fc", channels, 1000);
  return layers.take();
}

/// Simonyan and Zisserman 2014, configuration D; 224x224 pixels, 1000 classes.
std::vector<Parameter> vgg16() {
  constexpr std::array<std::size_t, 13> kWidths{64,  64,  128, 128, 256, 256, 256,
                                                512, 512, 512, 512, 512, 512};
  Layers layers;
  std::size_t channels = 3;
  for (std::size_t i = 0; i < kWidths.size(); ++i) {
    layers.convolution("conv" + std::to_string(i + 1), channels, kWidths[i], 3);
    channels = kWidths[i];
  }
  layers.linear("fc1", channels * 7 * 7, 4096);
  layers.linear("fc2", 4096, 4096);
  layers.linear("fc3", 4096, 1000);
  return layers.take();
}

/// Devlin et al. 2018, LARGE, uncased, with the pooler and without heads.
std::vector<Parameter> bert_large() {
  constexpr std::size_t kVocabulary = 30522, kPositions = 512, kTypes = 2;
  constexpr std::size_t kHidden = 1024, kInner = 4096, kLayers = 24;
  Layers layers;
  layers.tensor("embeddings.word", kVocabulary * kHidden);
  layers.tensor("embeddings.position", kPositions * kHidden);
  layers.tensor("embeddings.type", kTypes * kHidden);
  layers.norm("embeddings.norm", kHidden);
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    const std::string name = "encoder." + std::to_string(layer) + ".";
    for (const char* part : {"query", "key", "value", "attention"}) {
      layers.linear(name + part, kHidden, kHidden);
    }
    layers.norm(name + "attention_norm", kHidden);
    layers.linear(name + "intermediate", kHidden, kInner);
    layers.linear(name + "output", kInner, kHidden);
    layers.norm(name + "output_norm", kHidden);
  }
  layers.linear("pooler", kHidden, kHidden);
  return layers.take();
}

}  // namespace

std::size_t NetworkModel::count() const {
  return std::accumulate(
      parameters.begin(), parameters.end(), std::size_t{0},
      [](std::size_t sum, const Parameter& parameter) { return sum + parameter.count; });
}

std::vector<std::string> model_names() {
  return {"resnet50", "vgg16", "bert-large"};
}

NetworkModel make_model(const std::string& name) {
  if (name == "vgg16") return {name, vgg16()};
  if (name == "bert-large") return {name, bert_large()};
  return {"resnet50", resnet50()};
}

}  // namespace elastic::bench
