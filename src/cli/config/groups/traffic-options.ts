import { integer, rate } from '../kinds.js'
import { option } from '../option.js'

const perSecond = rate(1_000_000)
const bytes = rate(1_000_000_000_000)
const atOnce = integer(1, 1_000_000)

/** The options that bound what clients ask; see `options`. Without them there is no bound. */
export const trafficOptions = {
  requestRate: option('Limits', perSecond, {
    unit: 'requests per second',
    help: 'Requests of all clients together; more are answered with SlowDown and Retry-After, before anything is done for them. The burst is what a client may send at once after a pause, by default the requests of one second.',
  }),
  requestRatePerAddress: option('Limits', perSecond, {
    unit: 'requests per second',
    help: 'Those of one network address, signed or not.',
  }),
  requestRatePerKey: option('Limits', perSecond, {
    unit: 'requests per second',
    help: 'Those of one access key; temporary keys count for their user.',
  }),
  byteRate: option('Limits', bytes, {
    unit: 'bytes per second',
    help: 'Bodies of requests and responses of all clients together. A request that has begun is completed; further ones are answered with SlowDown until its bytes have been waited for.',
  }),
  byteRatePerAddress: option('Limits', bytes, { unit: 'bytes per second', help: 'Those of one network address.' }),
  byteRatePerKey: option('Limits', bytes, { unit: 'bytes per second', help: 'Those of one access key.' }),
  maxRequests: option('Limits', atOnce, {
    help: 'Maximum of requests in progress; further ones are answered with SlowDown.',
  }),
  maxRequestsPerAddress: option('Limits', atOnce, { help: 'Maximum of these for one network address.' }),
  maxRequestsPerKey: option('Limits', atOnce, { help: 'Maximum of these for one access key.' }),
} as const
