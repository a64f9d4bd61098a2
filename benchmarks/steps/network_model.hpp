#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace elastic::bench {

/// A trainable tensor of a network.
struct Parameter {
  std::string name;
  std::size_t count = 0;  ///< elements
};

/// The shapes of a network's gradients.
struct NetworkModel {
  std::string name;
  std::vector<Parameter> parameters;  ///< in the order of the forward pass

  std::size_t count() const;  ///< elements of all parameters
};

/// The known names: "resnet50", "vgg16", "bert-large".
std::vector<std::string> model_names();
/// Builds the model `name` of `model_names` from the definition of its architecture.
NetworkModel make_model(const std::string& name);

}  // namespace elastic::bench
