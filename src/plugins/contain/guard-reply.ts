import type { LateBody, LentSink, RelayBody, Reply } from '../../api/request.js'
import { PausableDeadline } from '../deadlines.js'
import { checkLate, checkReply } from './check-reply.js'

/**
 * Checks a reply, and applies the deadline to a body that comes after it, too. Throws TypeError for a reply that cannot
 * be sent.
 * @param ms deadline of the handler
 */
export function guardReply(reply: unknown, ms: number): Reply {
  checkReply(reply)
  const { body } = reply
  if (isLate(body)) return { ...reply, body: guardLate(body, ms) }
  if (isRelay(body)) return { ...reply, body: guardRelay(body, ms) }
  return reply
}

/** Releases the body of a reply that is not sent. */
export function discardReply({ body }: Reply): void {
  if (isRelay(body)) body.download.discard()
  if (isLate(body)) body.late.catch(() => {})
}

function isLate(body: Reply['body']): body is LateBody {
  return typeof body === 'object' && 'late' in body
}

function isRelay(body: Reply['body']): body is RelayBody {
  return typeof body === 'object' && 'download' in body
}

function guardLate(body: LateBody, ms: number): LateBody {
  const deadline = new PausableDeadline(ms)
  const late = deadline.race(body.late).then(checkLate)
  late.finally(() => deadline.clear()).catch(() => {})
  return { late }
}

function guardRelay({ download }: RelayBody, ms: number): RelayBody {
  return {
    download: {
      async lend(sink) {
        const deadline = new PausableDeadline(ms)
        try {
          await deadline.race(download.lend(guardLent(sink, deadline)))
        } catch (thrown) {
          download.discard()
          throw thrown
        } finally {
          deadline.clear()
        }
      },
      discard: () => download.discard(),
    },
  }
}

/** Pauses the deadline while a chunk is written to the client. */
function guardLent(sink: LentSink, deadline: PausableDeadline): LentSink {
  return (chunk, done) => {
    if (deadline.signal.aborted) return done(deadline.signal.reason)
    deadline.pause()
    sink(chunk, (error) => {
      deadline.resume()
      done(error)
    })
  }
}
