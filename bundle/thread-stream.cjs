// In the place of thread-stream, by which pino writes from another thread: src/common/log.ts writes from its own.
module.exports = class ThreadStream {
  constructor() {
    throw new Error('pino writes from no other thread here.')
  }
}
