// The part of Asio that is not a template, for all users of it.
#include <boost/asio/impl/src.hpp>
