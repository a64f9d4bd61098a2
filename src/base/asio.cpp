// What of Asio is no template, for all who use it.
#include <boost/asio/impl/src.hpp>
