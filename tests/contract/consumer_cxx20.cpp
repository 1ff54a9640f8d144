#include "consumer.h"
