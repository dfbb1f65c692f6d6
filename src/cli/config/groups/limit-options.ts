import { defaultLimits } from '../../../server/limits.js'
import { integer } from '../kinds.js'
import { option } from '../option.js'

/** The options of the group `Limits`; see `options`. */
export const limitOptions = {
  maxDocumentBytes: option('Limits', integer(1024, 64 * 1024 * 1024), {
    default: defaultLimits.maxDocumentBytes,
    unit: 'bytes',
    help: 'Largest XML request body.',
  }),
  bodyIdleSeconds: option('Limits', integer(1, 3600), {
    default: defaultLimits.bodyIdleMs / 1000,
    unit: 'seconds',
    help: 'Idle timeout of request bodies.',
  }),
  minBodyRate: option('Limits', integer(0, 1_000_000_000), {
    default: defaultLimits.minBodyRate,
    unit: 'bytes per second',
    help: 'Minimum rate of request bodies, averaged over twice --body-idle-seconds; slower ones are refused; 0 for no minimum.',
  }),
  maxBodies: option('Limits', integer(1, 1_000_000), {
    default: defaultLimits.maxBodies,
    help: 'Maximum of request bodies that are read at the same time; further ones are answered with SlowDown. Unsigned clients get at most half of them.',
  }),
  maxBodiesPerClient: option('Limits', integer(1, 1_000_000), {
    default: defaultLimits.maxBodiesPerClient,
    help: 'Maximum of these for one access key, or for one network address of unsigned clients.',
  }),
  maxSpoolBytes: option('Limits', integer(1024, 2 ** 49), {
    default: defaultLimits.maxSpoolBytes,
    unit: 'bytes',
    help: 'Maximum total size of bodies of unknown length, which are spooled to disk; more is answered with SlowDown. Unsigned clients get at most half of it.',
  }),
  maxSpoolBytesPerClient: option('Limits', integer(1024, 2 ** 49), {
    default: defaultLimits.maxSpoolBytesPerClient,
    unit: 'bytes',
    help: 'Maximum of these for one access key, or for one network address of unsigned clients.',
  }),
  maxStagedBytes: option('Limits', integer(1024, 2 ** 53 - 1), {
    default: defaultLimits.maxStagedBytes,
    unit: 'bytes',
    help: 'Parts of multipart uploads that are kept on disk until the upload is completed or ended, together; more is answered with SlowDown.',
  }),
  maxStagedBytesPerClient: option('Limits', integer(1024, 2 ** 53 - 1), {
    default: defaultLimits.maxStagedBytesPerClient,
    unit: 'bytes',
    help: 'Of these, those of uploads of one access key.',
  }),
  minFreeBytes: option('Limits', integer(0, 2 ** 53 - 1), {
    default: defaultLimits.minFreeBytes,
    unit: 'bytes',
    help: 'Free bytes on the disk of the data folder below which /-/ready answers 503, so that a load balancer sends requests to other proxies; 0 for never.',
  }),
  maxConnections: option('Limits', integer(1, 1_000_000), {
    default: 4096,
    help: 'Maximum of open connections to the S3 endpoint. At the maximum, a new one replaces the oldest one that has sent no complete request, or else the one that has been idle for the longest time.',
  }),
  maxConnectionsPerAddress: option('Limits', integer(1, 1_000_000), {
    help: 'Maximum of these for one network address, by default three quarters. The addresses in --trusted-proxies have no such maximum.',
  }),
  keyWaitSeconds: option('Limits', integer(1, 3600), {
    default: defaultLimits.keyWaitMs / 1000,
    unit: 'seconds',
    help: 'A write waits this long for an earlier write to the same key or for its unknown outcome, and then fails with SlowDown.',
  }),
  pluginDeadlineSeconds: option('Limits', integer(1, 3600), {
    default: defaultLimits.pluginDeadlineMs / 1000,
    unit: 'seconds',
    help: 'Deadline of plugins for a request, excluding the time that its body takes; then the request fails with InternalError.',
  }),
  shutdownGraceSeconds: option('Limits', integer(0, 3600), {
    default: 30,
    unit: 'seconds',
    help: 'Time for running requests to end after SIGTERM or SIGINT.',
  }),
  stopSeconds: option('Limits', integer(1, 7200), {
    unit: 'seconds',
    help: 'Longest time from SIGTERM or SIGINT to the end of the process, by default 20 s more than --shutdown-grace-seconds. What hangs then is abandoned, with exit code 1.',
  }),
} as const
