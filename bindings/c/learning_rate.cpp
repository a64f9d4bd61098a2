// Learning rates of trainings whose workers come and go.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "guard.hpp"
#include "handles.hpp"

using namespace elastic::c;

namespace {

/// A gradient of float32 in host memory.
class GivenGradient {
 public:
  GivenGradient(const elastic_tensor* tensors, size_t count, const char* call) {
    for (const elastic::TensorView& view : tensors_of(tensors, count, call)) {
      if (view.dtype != elastic::DType::kF32 || view.device.kind != elastic::Device::Kind::kHost) {
        throw elastic::Error(elastic::ErrorCode::kInvalidArgument,
                             std::string(call) + ": tensor " + std::to_string(spans_.size()) +
                                 " is not of ELASTIC_F32 in host memory");
      }
      spans_.emplace_back(static_cast<const float*>(view.data), view.count);
    }
  }
  elastic::Gradient get() const { return spans_; }

 private:
  std::vector<std::span<const float>> spans_;
};

elastic_rate rate_of(const elastic::Rate& rate) {
  return {sizeof(elastic_rate), rate.value(), rate.base, rate.gamma, rate.momentum_scale};
}

}  // namespace

elastic_code elastic_schedule_constant(double base, elastic_schedule** schedule) {
  return guarded([&] {
    require(schedule, "elastic_schedule_constant", "schedule");
    *schedule = new elastic_schedule{elastic::Schedule::constant(base)};
  });
}
elastic_code elastic_schedule_step(double base, const double* milestones, size_t count,
                                   double factor, elastic_schedule** schedule) {
  return guarded([&] {
    require(schedule, "elastic_schedule_step", "schedule");
    if (count > 0) require(milestones, "elastic_schedule_step", "milestones");
    *schedule = new elastic_schedule{
        elastic::Schedule::step(base, std::vector<double>(milestones, milestones + count), factor)};
  });
}
elastic_code elastic_schedule_cosine(double base, double samples, double last,
                                     elastic_schedule** schedule) {
  return guarded([&] {
    require(schedule, "elastic_schedule_cosine", "schedule");
    *schedule = new elastic_schedule{elastic::Schedule::cosine(base, samples, last)};
  });
}
elastic_code elastic_schedule_polynomial(double base, double samples, double power, double last,
                                         elastic_schedule** schedule) {
  return guarded([&] {
    require(schedule, "elastic_schedule_polynomial", "schedule");
    *schedule = new elastic_schedule{elastic::Schedule::polynomial(base, samples, power, last)};
  });
}
elastic_code elastic_schedule_warm_up(elastic_schedule* schedule, double samples, double first) {
  return guarded([&] {
    require(schedule, "elastic_schedule_warm_up", "schedule");
    schedule->value = schedule->value.with_warm_up(samples, first);
  });
}
elastic_code elastic_schedule_rate(const elastic_schedule* schedule, double samples, double* rate) {
  return guarded([&] {
    require(schedule, "elastic_schedule_rate", "schedule");
    require(rate, "elastic_schedule_rate", "rate");
    *rate = schedule->value.rate(samples);
  });
}
void elastic_schedule_destroy(elastic_schedule* schedule) {
  delete schedule;
}

elastic_code elastic_learning_rate_create(elastic_context* context,
                                          const elastic_schedule* schedule, double batch_reference,
                                          const char* rule, const char* policy, uint64_t ramp_steps,
                                          double momentum, elastic_learning_rate** learning_rate) {
  constexpr const char* kCall = "elastic_learning_rate_create";
  return guarded([&] {
    require(schedule, kCall, "schedule");
    require(learning_rate, kCall, "learning_rate");
    elastic::LearningRate::Options options{.schedule = schedule->value,
                                           .batch_reference = batch_reference};
    if (rule != nullptr) options.rule = choice_of(elastic::kScalingRules, rule, kCall, "rule");
    options.policy = policy != nullptr
                         ? choice_of(elastic::kResizePolicies, policy, kCall, "policy")
                         : context_of(context, kCall).resize_policy();
    if (ramp_steps != 0) options.ramp_steps = ramp_steps;
    options.momentum = momentum;
    *learning_rate = new elastic_learning_rate{elastic::LearningRate(options)};
  });
}
elastic_code elastic_gradient_moments(const elastic_tensor* gradient_sum, size_t count,
                                      double samples, double* moments) {
  constexpr const char* kCall = "elastic_gradient_moments";
  return guarded([&] {
    require(moments, kCall, "moments");
    const GivenGradient gradient(gradient_sum, count, kCall);
    const auto computed = elastic::GradientNoise::moments(gradient.get(), samples);
    std::copy(computed.begin(), computed.end(), moments);
  });
}
elastic_code elastic_learning_rate_observe(elastic_learning_rate* learning_rate,
                                           const double* total, const elastic_tensor* gradient_sum,
                                           size_t count) {
  constexpr const char* kCall = "elastic_learning_rate_observe";
  return guarded([&] {
    require(learning_rate, kCall, "learning_rate");
    require(total, kCall, "total");
    const GivenGradient gradient(gradient_sum, count, kCall);
    elastic::GradientNoise::Moments moments{};
    std::copy_n(total, moments.size(), moments.begin());
    learning_rate->value.observe(moments, gradient.get());
  });
}
elastic_code elastic_learning_rate_step(elastic_learning_rate* learning_rate, double batch,
                                        double samples, elastic_rate* rate) {
  constexpr const char* kCall = "elastic_learning_rate_step";
  return guarded([&] {
    require(learning_rate, kCall, "learning_rate");
    fill_struct<elastic_rate>(rate, rate_of({}), kCall);  // a mistake, before the step is counted
    fill_struct<elastic_rate>(rate, rate_of(learning_rate->value.step(batch, samples)), kCall);
  });
}
elastic_code elastic_learning_rate_latest(const elastic_learning_rate* learning_rate,
                                          elastic_rate* rate) {
  constexpr const char* kCall = "elastic_learning_rate_latest";
  return guarded([&] {
    require(learning_rate, kCall, "learning_rate");
    fill_struct<elastic_rate>(rate, rate_of(learning_rate->value.latest()), kCall);
  });
}
double elastic_learning_rate_progress(const elastic_learning_rate* learning_rate) {
  return learning_rate != nullptr ? learning_rate->value.progress() : 0;
}
elastic_code elastic_state_add_learning_rate(elastic_state* state, const char* name,
                                             elastic_learning_rate* learning_rate) {
  constexpr const char* kCall = "elastic_state_add_learning_rate";
  return guarded([&] {
    require(state, kCall, "state");
    require(name, kCall, "name");
    require(learning_rate, kCall, "learning_rate");
    state->value.add(name, learning_rate->value);
  });
}
void elastic_learning_rate_destroy(elastic_learning_rate* learning_rate) {
  delete learning_rate;
}
