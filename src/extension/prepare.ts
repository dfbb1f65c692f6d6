import { z } from 'zod'
import type { S3Request } from '../request/s3-request.js'
import type { CallFacts, Document } from './call.js'
import { checked } from './check.js'
import { normalized } from './names.js'
import { readBody } from './read-body.js'
import { type FrameQuery, readFrameQuery, readQuery } from './read-query.js'
import { type ObjectShape, type Shape, shapeOf } from './shape.js'

const NOTHING = z.strictObject({})

/** What a request says, read and checked. */
export interface Asked {
  readonly body: Document
  readonly query: Document
  readonly frame: FrameQuery
  /** `Force` in the body of a call that spends. */
  readonly force: boolean
}

/** What of a call is made once. */
export interface PreparedCall {
  /** Of the answer. */
  readonly shape: Shape
  readonly root: string
  /** Query parameters of the call's own. */
  readonly parameters: readonly string[]
  /** Throws InvalidArgument, InvalidRequest, MalformedXML, EntityTooLarge. */
  read(request: S3Request): Promise<Asked>
}

/** Throws Error for a declaration that contradicts itself. */
export function prepare(call: CallFacts): PreparedCall {
  const reads = call.on.method === 'GET'
  const query = objectShape(call, 'query', call.query)
  const declared = objectShape(call, 'body', call.body)
  const ownsForce = declared.members.has('Force')
  const bodyShape = call.spends && !ownsForce ? withForce(declared) : declared
  const aliases = aliasesOf(call, declared)
  checkPages(call)

  async function readDocument(request: S3Request): Promise<{ body: Document; force: boolean }> {
    if (reads) return { body: {}, force: false }
    const { Force, ...others } = (await readBody(request, bodyShape, aliases)) as Document
    const given = ownsForce && Force !== undefined ? { ...others, Force } : others
    return { body: await checked(call.body ?? NOTHING, given), force: Force === true }
  }

  return {
    shape: shapeOf(call.result, 'output'),
    root: call.root ?? `${call.name}Result`,
    parameters: [...query.members.keys()],
    async read(request) {
      const frame = readFrameQuery(request)
      const asked = await checked(call.query ?? NOTHING, readQuery(request, query, call.on.subresource))
      return { frame, query: asked, ...(await readDocument(request)) }
    },
  }
}

/** A list in pages says by members of the answer how it goes on, which are undeclared: they are the frame's. */
function checkPages({ name, pages, result }: CallFacts): void {
  if (pages === undefined) return
  const shape = shapeOf(result, 'output')
  if (shape.kind === 'object' && shape.members.get(pages)?.shape.kind === 'list') return
  throw new Error(`${name}: "${pages}" of its result is no list`)
}

function objectShape(call: CallFacts, what: string, schema: z.ZodType = NOTHING): ObjectShape & Shape {
  const shape = shapeOf(schema, 'input')
  if (shape.kind !== 'object') throw new Error(`${call.name}: the schema of its ${what} is none of an object`)
  return shape
}

function withForce(shape: ObjectShape & Shape): ObjectShape & Shape {
  const member = { shape: { kind: 'boolean', nullable: false }, required: false } as const
  return {
    ...shape,
    members: new Map([...shape.members, ['Force', member]]),
    names: new Map([...shape.names, [normalized('Force'), 'Force']]),
  }
}

/** By what is compared of them. */
function aliasesOf(call: CallFacts, { members }: ObjectShape): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(call.aliases ?? {}).map(([alias, name]) => {
      if (!members.has(name)) throw new Error(`${call.name}: ${alias} is an alias of ${name}, which is no member`)
      return [normalized(alias), name]
    }),
  )
}
