import { z } from 'zod'
import type { CallDeclaration } from '../extension/call.js'
import type { AnyOperation } from '../registry/plugin.js'
import type { Row } from '../registry/table.js'
import type { Resource } from '../request/s3-request.js'

type Call = CallDeclaration<Resource, never, never, never>
type Json = Readonly<Record<string, unknown>>

export interface Described {
  readonly title: string
  readonly version: string
  /** Scheme and host that the client reached us by. */
  readonly server: string
  readonly rows: readonly Row[]
}

/**
 * What the calls of all plugins are, as an OpenAPI 3.1 document (https://spec.openapis.org/oas/v3.1.0.html). Paths there know nothing of queries: a sub-resource stands
 * behind `#` in the path, and as a required parameter.
 */
export function describeCalls({ title, version, server, rows }: Described): Json {
  const paths: Record<string, Record<string, Json>> = {}
  const plugins = new Set<string>()
  for (const { plugin, operation } of rows) {
    const { call } = operation
    if (!call) continue
    plugins.add(plugin)
    const path = pathOf(operation)
    paths[path] = { ...paths[path], [operation.on.method.toLowerCase()]: describeCall(plugin, operation, call as Call) }
  }
  return {
    openapi: '3.1.0',
    info: { title, version, description: 'The extension endpoints. The rest of the server is Amazon S3.' },
    servers: [{ url: server }],
    tags: [...plugins].map((name) => ({ name })),
    security: [{ sigv4: [] }],
    paths,
    components: {
      securitySchemes: {
        sigv4: {
          type: 'apiKey',
          in: 'header',
          name: 'Authorization',
          description: 'AWS Signature Version 4, service s3.',
        },
      },
      schemas: { Error: ERROR },
    },
  }
}

/** Two operations may share a path and differ in the method alone; a sub-resource makes another path of it. */
function pathOf({ on, call }: AnyOperation): string {
  if (on.resource === 'service') return on.path ?? '/'
  const base = on.resource === 'bucket' ? '/{Bucket}' : '/{Bucket}/{Key}'
  return `${base}#${call?.on.subresource ?? ''}`
}

function describeCall(plugin: string, operation: AnyOperation, call: Call): Json {
  const answer = { description: 'The answer.', content: contentOf(schemaOf(call.result, 'output')) }
  return {
    operationId: `${plugin}_${call.name}_${operation.on.method}`,
    tags: [plugin],
    summary: call.summary,
    parameters: [...placeParameters(operation), ...queryParameters(call), ...frameParameters(call)],
    ...(call.body && { requestBody: { content: contentOf(schemaOf(call.body, 'input')) } }),
    responses: {
      200: answer,
      ...(('job' in call || 'jobId' in call) && {
        202: {
          description: 'Not done yet: the job that does it.',
          headers: {
            Location: { schema: { type: 'string' } },
            'x-dealgate-job-id': { schema: { type: 'string' } },
          },
        },
      }),
      default: { description: 'What went wrong.', content: contentOf({ $ref: '#/components/schemas/Error' }) },
    },
  }
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

function queryParameters({ query }: Call): Json[] {
  if (!query) return []
  const { properties = {}, required = [] } = schemaOf(query, 'input') as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
  }))
}

/** What the frame reads of every call. */
function frameParameters(call: Call): Json[] {
  const optional = (name: string, where: 'query' | 'header', schema: Json) => ({
    name,
    in: where,
    required: false,
    schema,
  })
  return [
    optional('format', 'query', { type: 'string', enum: ['json', 'xml'] }),
    ...(call.pages
      ? [
          optional('max-items', 'query', { type: 'integer', minimum: 1, maximum: 1000 }),
          optional('continuation-token', 'query', { type: 'string' }),
        ]
      : []),
    ...('job' in call
      ? [
          optional('x-amz-client-token', 'header', { type: 'string', minLength: 1, maxLength: 64 }),
          optional('Prefer', 'header', { type: 'string', examples: ['wait=20'] }),
        ]
      : []),
  ]
}

function contentOf(schema: Json): Json {
  return { 'application/json': { schema }, 'application/xml': { schema } }
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  // What JSON Schema cannot say, such as a refinement, is left out of it.
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return rest
}

const ERROR: Json = {
  type: 'object',
  required: ['Code', 'Message'],
  properties: {
    Code: { type: 'string' },
    Message: { type: 'string' },
    Resource: { type: 'string' },
    RequestId: { type: 'string' },
    Details: { type: 'object' },
  },
}
