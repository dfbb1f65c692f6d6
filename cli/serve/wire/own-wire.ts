import type { MessagePort } from 'node:worker_threads'
import type { Reads } from '../../../common/port-messages.js'
import type { OwnWire } from '../../../src/gateway/transport/wire.js'
import { PortWire } from './port-wire.js'
import { ReadingWire } from './reading-wire.js'

interface OwnGateway {
  /** Leads to the gateway where that is in this process: requests go over it, and not over HTTP. */
  readonly port?: MessagePort | undefined
  /** Answers in this thread what changes nothing, where the gateway's data are on this machine. */
  readonly reads?: Reads | undefined
}

/** What carries requests to the embedded gateway; undefined where that is reached over HTTP alone. */
export function ownWire({ port, reads }: OwnGateway): OwnWire | undefined {
  if (!port && !reads) return undefined
  return (url, connections) => {
    const wire = port ? new PortWire(port, url) : connections()
    return reads ? new ReadingWire(reads, wire, url) : wire
  }
}
