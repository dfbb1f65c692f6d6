import type { CallFacts } from '../../calls/declare/call.js'
import type { AnyOperation } from '../../forms/plugin.js'
import type { Json, OpenApiSchemas } from './schemas.js'

/** A call to describe, with a unique id in the document. */
export interface Called {
  readonly plugin: string
  readonly operation: AnyOperation
  readonly call: CallFacts
  /** `deal_GetDeal_GET` */
  readonly id: string
  readonly schemas: OpenApiSchemas
}

/** Returns the parameters of a call: those in the path, in the query and in headers. */
export function parametersOf(called: Called): Json[] {
  return [...placeParameters(called.operation), ...queryParameters(called), ...frameParameters(called.call)]
}

function placeParameters({ on, call }: AnyOperation): Json[] {
  const inPath = (name: string) => ({ name, in: 'path', required: true, schema: { type: 'string' } })
  if (on.resource === 'service')
    return [...(on.path ?? '').matchAll(/\{([^}]+)\}/g)].map(([, name]) => inPath(name ?? ''))
  const names = on.resource === 'bucket' ? ['Bucket'] : ['Bucket', 'Key']
  const subresource = {
    name: call?.on.subresource ?? '',
    in: 'query',
    required: true,
    allowEmptyValue: true,
    schema: { type: 'string', enum: [''] },
  }
  return [...names.map(inPath), subresource]
}

function queryParameters({ call, id, schemas }: Called): Json[] {
  if (!call.query) return []
  const { properties = {}, required = [] } = schemas.of(call.query, 'input', `${id}_query`) as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...(description !== undefined && { description }),
    schema,
  }))
}

function formatsOf({ jsonOnly, csv }: CallFacts): readonly string[] {
  return jsonOnly ? ['json'] : ['json', 'xml', ...(csv ? ['csv'] : [])]
}

/** Parameters that the frame reads. */
function frameParameters(call: CallFacts): Json[] {
  const optional = (name: string, where: 'query' | 'header', schema: Json) => ({
    name,
    in: where,
    required: false,
    schema,
  })
  return [
    optional('format', 'query', { type: 'string', enum: formatsOf(call) }),
    ...(call.pages
      ? [
          optional('max-items', 'query', { type: 'integer', minimum: 1, maximum: 1000 }),
          optional('continuation-token', 'query', { type: 'string' }),
        ]
      : []),
    ...(call.job !== undefined
      ? [
          optional('x-amz-client-token', 'header', { type: 'string', minLength: 1, maxLength: 64 }),
          optional('Prefer', 'header', { type: 'string', examples: ['wait=20'] }),
        ]
      : []),
  ]
}
