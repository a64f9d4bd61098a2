// Where the time goes, how operations are done, and the check that may end a wait.
#include <chrono>
#include <cstring>
#include <string>

#include "arguments.hpp"
#include "guard.hpp"
#include "handles.hpp"

using namespace elastic::c;

namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

elastic_step_time time_of(const elastic::StepTime& time) {
  return {seconds(time.data), seconds(time.compute), seconds(time.communication),
          seconds(time.view_change)};
}

/// `what`: the parameter that has the room.
void put_text(const std::string& text, char* to, size_t room, const char* call, const char* what) {
  if (text.size() >= room) {
    throw elastic::Error(elastic::ErrorCode::kInvalidArgument,
                         std::string(call) + ": the " + what + " takes " +
                             std::to_string(text.size() + 1) + " bytes, and there is room for " +
                             std::to_string(room));
  }
  std::memcpy(to, text.c_str(), text.size() + 1);
}

double moment_of(elastic::ViewChange::Moment moment) {
  return seconds(moment.time_since_epoch());
}

}  // namespace

elastic_code elastic_get_step_times(elastic_context* context, elastic_step_times* times) {
  return guarded([&] {
    const elastic::StepTimes its = context_of(context, "elastic_get_step_times").step_times();
    fill_struct<elastic_step_times>(times,
                                    {sizeof(elastic_step_times), its.steps, time_of(its.latest),
                                     time_of(its.sum), its.compared_commit, its.slowest},
                                    "elastic_get_step_times");
  });
}

elastic_code elastic_get_view_change(elastic_context* context, elastic_view_change* change) {
  return guarded([&] {
    const elastic::ViewChange its =
        context_of(context, "elastic_get_view_change").last_view_change();
    fill_struct<elastic_view_change>(
        change,
        {sizeof(elastic_view_change), its.generation, moment_of(its.noticed),
         moment_of(its.reported), moment_of(its.decided), moment_of(its.linked),
         moment_of(its.installed), moment_of(its.resumed)},
        "elastic_get_view_change");
  });
}

elastic_code elastic_get_tuning(elastic_context* context, elastic_tuning* tuning) {
  return guarded([&] {
    const elastic::Tuning its = context_of(context, "elastic_get_tuning").tuning();
    fill_struct<elastic_tuning>(
        tuning,
        {sizeof(elastic_tuning), its.generation, its.inside_hosts.latency_us,
         its.inside_hosts.gigabytes_per_second, its.between_hosts.latency_us,
         its.between_hosts.gigabytes_per_second, its.flows_opened, its.flows_used,
         its.segment_bytes},
        "elastic_get_tuning");
  });
}

elastic_code elastic_get_algorithm(elastic_context* context, size_t bytes, char* name,
                                   size_t room) {
  constexpr const char* kCall = "elastic_get_algorithm";
  return guarded([&] {
    require(name, kCall, "name");
    const elastic::Tuning its = context_of(context, kCall).tuning();
    std::string found;
    for (const auto& choice : its.allreduce) {
      found = choice.algorithm;
      if (bytes <= choice.up_to_bytes) break;
    }
    put_text(found, name, room, kCall, "name");
  });
}

elastic_code elastic_start_timeline(elastic_context* context, const char* path) {
  return guarded([&] {
    require(path, "elastic_start_timeline", "path");
    context_of(context, "elastic_start_timeline").start_timeline(path);
  });
}

elastic_code elastic_stop_timeline(elastic_context* context) {
  return guarded([&] { context_of(context, "elastic_stop_timeline").stop_timeline(); });
}

elastic_code elastic_get_timeline_file(elastic_context* context, char* path, size_t room) {
  constexpr const char* kCall = "elastic_get_timeline_file";
  return guarded([&] {
    require(path, kCall, "path");
    put_text(context_of(context, kCall).timeline_file(), path, room, kCall, "path");
  });
}

elastic_code elastic_loading_begin(elastic_loading** loading) {
  return guarded([&] {
    require(loading, "elastic_loading_begin", "loading");
    *loading = new elastic_loading;
  });
}
void elastic_loading_destroy(elastic_loading* loading) {
  delete loading;
}

elastic_code elastic_interrupt_create(elastic_code (*check)(void* user), void* user,
                                      elastic_interrupt** interrupt) {
  constexpr const char* kCall = "elastic_interrupt_create";
  return guarded([&] {
    require(reinterpret_cast<const void*>(check), kCall, "check");
    require(interrupt, kCall, "interrupt");
    *interrupt = new elastic_interrupt{elastic::InterruptCheck(
        [check, user] { call_back("the interrupt's check", [&] { return check(user); }); })};
  });
}
void elastic_interrupt_destroy(elastic_interrupt* interrupt) {
  delete interrupt;
}
