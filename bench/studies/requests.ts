import type { Job } from '../load/job.js'
import type { DealgateServer } from '../servers/dealgate.js'
import { s3Requests } from '../servers/s3-requests.js'
import type { Operation } from '../servers/subject.js'

interface Many {
  readonly connections: number
  readonly count: number
  /** Different keys, in turn; default 100. */
  readonly keys?: number
  /** In place of keys. */
  readonly paths?: readonly string[]
  /** Bytes of an object; default 1 KiB. */
  readonly size?: number
  readonly bucket?: string
}

/** A job of the load: many requests of one operation for objects of a server. */
export function requests(server: DealgateServer, operation: Operation, many: Many): Job {
  const { connections, count, keys = 100, size = 1024, bucket = 'bench' } = many
  const paths = many.paths ?? Array.from({ length: keys }, (_, i) => `${bucket}/small/${i}`)
  const { shot, expected } = s3Requests(server)
  return {
    requests: {
      host: '127.0.0.1',
      port: server.port,
      connections,
      shots: paths.map((path) => shot(operation, path, size)),
      count,
      size,
      sends: operation === 'PUT',
      expected: expected(operation),
    },
  }
}
