/** Causes of causes that are looked at: `fetch` and the clients of databases wrap the error of the system. */
const MAX_DEPTH = 5

/**
 * The text that Node gives a failed look-up of a host. Some clients of databases keep no more of the error:
 * https://nodejs.org/api/errors.html#common-system-errors
 */
const LOOK_UP = /^getaddrinfo (E[A-Z_]+) (\S+)$/

/**
 * Why a host name could not be resolved, and the remedy, as two sentences of which the first begins in lower case and
 * the second has no full stop. Undefined for an error that has another reason.
 */
export function nameFailure(error: unknown): string | undefined {
  let at = error
  for (let depth = 0; depth < MAX_DEPTH && at instanceof Error; depth++, at = firstOf(at)) {
    const [, code, host] = LOOK_UP.exec(at.message) ?? []
    if (code === undefined) continue
    if (code === 'EAI_AGAIN')
      return `the host name ${host} cannot be resolved now: no name server answers. Check the network and the name servers of this machine (/etc/resolv.conf), or use an IP address`
    return `the host name ${host} is unknown to the name servers. Check its spelling, or use an IP address`
  }
  return undefined
}

/** A connection to a name with several addresses fails with the errors of all of them. */
function firstOf(error: Error): unknown {
  return error instanceof AggregateError ? error.errors[0] : error.cause
}
