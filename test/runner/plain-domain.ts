/** Takes an error that nothing caught, and how it came up. */
type OnError = (error: unknown, origin: string) => unknown

const domains = new Set<Domain>()

/**
 * Stands in for the package async-hook-domain in bundled tests: the same interface, without a hook for each promise and
 * socket that a test and the servers in its process make, which takes a fifth of their CPU time. An error that nothing
 * caught fails the whole file, not the subtest that caused it.
 */
export class Domain {
  onerror: OnError

  constructor(onerror: OnError) {
    this.onerror = onerror
    if (domains.size === 0) process.on('uncaughtExceptionMonitor', fail)
    domains.add(this)
  }

  destroy(): void {
    domains.delete(this)
    if (domains.size === 0) process.off('uncaughtExceptionMonitor', fail)
  }
}

/** Reports the error to the first domain, which is that of the file, unless the test takes such errors itself. */
function fail(error: unknown, origin: string): void {
  if (process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()) return
  const [file] = domains
  file?.onerror(error, origin)
  process.setUncaughtExceptionCaptureCallback(() => process.setUncaughtExceptionCaptureCallback(null))
}
