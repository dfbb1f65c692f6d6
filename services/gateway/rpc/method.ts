import { z } from 'zod'
import type { ClientAddress } from '../../http/server.js'
import type { Identity } from '../access.js'
import type { Account } from '../accounts/accounts.js'
import type { GatewayContext, ReadContext } from '../context.js'
import { GatewayError } from '../errors.js'
import type { Feature } from '../features.js'

/**
 * Value of `uiVersion` in every result: a date that changes with the interface, which makes consoles reload themselves.
 */
export const UI_VERSION = '2026-11-21T00:00:00Z'

export interface RpcCall<C extends ReadContext = GatewayContext> {
  readonly context: C
  readonly identity: Identity
  readonly client: ClientAddress
}

/** A result that is streamed while it is generated: parts of one JSON object. */
export class StreamedResult {
  readonly parts: AsyncIterable<string>

  constructor(parts: AsyncIterable<string>) {
    this.parts = parts
  }
}

/** A result whose members, besides `uiVersion`, are JSON already: `"name":value,...`. */
export class WrittenResult {
  readonly members: string

  constructor(members: string) {
    this.members = members
  }
}

/** All forms of a result. */
export type AnyResult = RpcResult | StreamedResult | WrittenResult

/** Members of a result besides `uiVersion`. */
export type RpcResult = Readonly<Record<string, unknown>>

export interface RpcMethod<C extends ReadContext = GatewayContext> {
  /** Full name with its service, as in `web.Login`. */
  readonly name: string
  /** `policy`: anonymous callers may call it, and the method decides. `signed`: only accounts may. */
  readonly access: 'public' | 'signed' | 'policy'
  /** The method exists only on gateways with this feature. */
  readonly feature?: Feature
  /** Parameter names are matched case-insensitively. */
  readonly params: z.ZodObject
  // biome-ignore lint/suspicious/noExplicitAny: each method declares its own params; `defineMethod` checks the type
  run(params: any, call: RpcCall<C>): AnyResult | Promise<AnyResult>
}

interface MethodOf<T extends z.ZodObject, C extends ReadContext> {
  readonly name: string
  readonly access: 'public' | 'policy'
  readonly feature?: Feature
  readonly params: T
  run(params: z.output<T>, call: RpcCall<C>): ReturnType<RpcMethod['run']>
}

export function defineMethod<T extends z.ZodObject>(method: MethodOf<T, GatewayContext>): RpcMethod {
  return method
}

/** A method that changes nothing. */
export function defineRead<T extends z.ZodObject>(method: MethodOf<T, ReadContext>): RpcMethod<ReadContext> {
  return method
}

export interface SignedCall<C extends ReadContext = GatewayContext> extends RpcCall<C> {
  readonly account: Account
}

interface SignedMethodOf<T extends z.ZodObject, C extends ReadContext> {
  readonly name: string
  readonly feature?: Feature
  readonly params: T
  run(params: z.output<T>, call: SignedCall<C>): ReturnType<RpcMethod['run']>
}

export function defineSignedMethod<T extends z.ZodObject>(method: SignedMethodOf<T, GatewayContext>): RpcMethod {
  return signed(method)
}

/** A method that changes nothing, for accounts alone. */
export function defineSignedRead<T extends z.ZodObject>(
  method: SignedMethodOf<T, ReadContext>,
): RpcMethod<ReadContext> {
  return signed(method)
}

function signed<T extends z.ZodObject, C extends ReadContext>(method: SignedMethodOf<T, C>): RpcMethod<C> {
  return {
    ...method,
    access: 'signed',
    run(params: z.output<T>, call: RpcCall<C>) {
      if (call.identity === 'anonymous') throw new GatewayError('NoToken')
      return method.run(params, { ...call, account: call.identity })
    },
  }
}

/** One half of a surrogate pair cannot be encoded: it would silently name another key. */
const LONE_SURROGATE = /\p{Surrogate}/u

/** A string. Absent and null count as '', as in Go's decoder. */
export const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '')
  .refine((value) => !LONE_SURROGATE.test(value), 'must be well-formed Unicode')

/** A string whose absence differs from ''. */
export const optionalText = z
  .string()
  .optional()
  .refine((value) => value === undefined || !LONE_SURROGATE.test(value), 'must be well-formed Unicode')

export const texts = z
  .array(text)
  .nullish()
  .transform((value) => value ?? [])
