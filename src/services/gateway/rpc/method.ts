import type { z } from 'zod'
import type { Identity } from '../access/access.js'
import type { GatewayContext } from '../context.js'

/** Value of `uiVersion` in every result: a date that changes when the interface does; consoles reload themselves then. */
export const UI_VERSION = '2026-11-21T00:00:00Z'

export interface RpcCall {
  readonly context: GatewayContext
  readonly identity: Identity
}

/** A result that is written while it is made: parts of one JSON object. */
export class StreamedResult {
  readonly parts: AsyncIterable<string>

  constructor(parts: AsyncIterable<string>) {
    this.parts = parts
  }
}

/** Members beside `uiVersion`. */
export type RpcResult = Readonly<Record<string, unknown>>

export interface RpcMethod {
  /** With its service, as in `web.Login`. */
  readonly name: string
  /** `policy`: anybody may call, the method decides. */
  readonly access: 'public' | 'signed' | 'policy'
  /** Names in params are matched to these without regard to case. */
  readonly params: z.ZodObject
  // biome-ignore lint/suspicious/noExplicitAny: each method knows the type of its own params; `defineMethod` checks it
  run(params: any, call: RpcCall): RpcResult | StreamedResult | Promise<RpcResult | StreamedResult>
}

export function defineMethod<T extends z.ZodObject>(method: {
  readonly name: string
  readonly access: RpcMethod['access']
  readonly params: T
  run(params: z.output<T>, call: RpcCall): ReturnType<RpcMethod['run']>
}): RpcMethod {
  return method
}
