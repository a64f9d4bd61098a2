// Groups, their rules, and rules that are functions of Python.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <elastic/group.hpp>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "errors.hpp"
#include "interpreter_lock.hpp"
#include "text.hpp"

namespace elastic::python {

namespace {

/// A function of Python that the library copies and drops on threads without the interpreter's
/// lock.
class ChoosingFunction {
 public:
  ChoosingFunction(std::string rule, nb::callable function)
      : rule_(std::move(rule)), function_(new nb::callable(std::move(function)), &drop) {}

  std::vector<WorkerId> operator()(std::span<const GroupMember> members, WorkerId self) const {
    return call_python([&] {
      nb::list given;
      for (const GroupMember& each : members) given.append(nb::make_tuple(each.id, each.host));
      const nb::object chosen = (*function_)(given, self);
      std::vector<WorkerId> ids;
      if (nb::try_cast(chosen, ids)) return ids;
      throw Error(ErrorCode::kInvalidArgument, "the rule '" + rule_ + "' of a group returned " +
                                                   text_of(nb::repr(chosen)) +
                                                   "; its function has to return a list of ids of "
                                                   "members");
    });
  }

 private:
  /// After the interpreter's end the function stays.
  static void drop(nb::callable* function) {
    if (Py_IsInitialized() == 0) return;
    if (const OfferedLock held; held) delete function;
  }

  std::string rule_;
  std::shared_ptr<nb::callable> function_;
};

GroupRule rule_by(const std::string& name, nb::callable function) {
  return GroupRule::by(name, ChoosingFunction(name, std::move(function)));
}

/// All queries may apply a rule, and a function of Python needs the lock for that.
template <typename Query>
auto unlocked(Query query) {
  const ReleasedLock released;
  return query();
}

Group& group_of_job(Context& context, const GroupRule& rule) {
  return unlocked([&]() -> std::reference_wrapper<Group> { return context.group(rule); });
}

Group& group_of_group(Group& group, const GroupRule& rule) {
  return unlocked([&]() -> std::reference_wrapper<Group> { return group.group(rule); });
}

void bind_rule(nb::module_& module) {
  using nb::arg;
  nb::class_<GroupRule>(
      module, "GroupRule",
      "Says which members are in a group. It is applied when the members are made the same: in "
      "``run``,\nand at each ``commit`` at which workers join. Between these moments a group loses "
      "the members that\nleave, and nothing else changes.")
      .def_static("per_host", &GroupRule::per_host, "The members on this worker's host.")
      .def_static("across_hosts", &GroupRule::across_hosts,
                  "The members that have this worker's rank among the members on their host.")
      .def_static("every", &GroupRule::every, arg("step"), arg("first") = 0,
                  "The ranks first, first + step, first + 2 * step and so on.")
      .def_static("ranks", &GroupRule::ranks, arg("ranks"),
                  "The members that have these ranks. Ranks that no member has are left out.")
      .def_static("workers", &GroupRule::workers, arg("workers"),
                  "These workers (``members().workers``), as far as they are members.")
      .def_static(
          "by", &rule_by, arg("name"), arg("function"),
          nb::sig("def by(name: str, function: collections.abc.Callable[[list[tuple[int, int]], "
                  "int], collections.abc.Sequence[int]]) -> GroupRule"),
          "As ``function(members, own)`` chooses. ``members`` has a pair of a worker's id and the "
          "number of\nits host for each member, in rank order; ``own`` is the id of this worker. "
          "It returns the ids of the\nmembers that are in the group, and must give the same group "
          "on all of them.\n\nRules with the same name are the same rule: the function that came "
          "first is used.")
      .def_prop_ro("name", &GroupRule::name, "The rule in words, such as ``per host``.")
      .def("__repr__",
           [](const GroupRule& rule) { return "elastic.GroupRule('" + rule.name() + "')"; });
}

}  // namespace

void bind_group(nb::module_& module, ContextClass& context) {
  using nb::arg;
  bind_rule(module);
  constexpr auto kChosen =
      "The group of the members that ``rule`` chooses, with collectives of its own. The same rule "
      "gives the\nsame group.";
  context.def("group", &group_of_job, arg("rule"), kChosen, nb::rv_policy::reference_internal);
  module.def(
      "group",
      [](const GroupRule& rule) -> Group& { return group_of_job(elastic::context(), rule); },
      arg("rule"), kChosen, nb::rv_policy::reference);
  nb::class_<Group, Collectives>(
      module, "Group",
      "Some of a job's members, with collectives of their own, which ``group`` makes.\n\nRanks and "
      "roots are those in the group. After a death the same call returns the right result on "
      "the\nsurvivors. The calls of a group keep their order among themselves only.\n\nA "
      "collective raises InvalidArgumentError on a worker that is not in the group.")
      .def(
          "rank", [](Group& self) { return unlocked([&] { return self.rank(); }); },
          "This worker's rank in the group; -1 if it is not in it, or is joining the job.")
      .def(
          "size", [](Group& self) { return unlocked([&] { return self.size(); }); },
          "The number of members.")
      .def(
          "members", [](Group& self) { return unlocked([&] { return self.members(); }); },
          "The members, in the order of their ranks in the group.")
      .def_prop_ro("name", &Group::name, "Its rule in words.")
      .def("group", &group_of_group, arg("rule"), nb::rv_policy::reference_internal,
           "The group of some of this group's members: ``rule`` is applied to them as if they were "
           "the job.")
      .def("__repr__", [](const Group& self) { return "elastic.Group('" + self.name() + "')"; });
}

}  // namespace elastic::python
