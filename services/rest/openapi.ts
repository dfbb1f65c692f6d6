import type { RequestHandler } from 'express'
import { z } from 'zod'
import { version } from '../../common/files/package-folder.js'
import { replyJson } from '../http/reply.js'
import { exchangeOf } from './app.js'
import type { RouteFacts } from './routes.js'

type Json = Readonly<Record<string, unknown>>

/** What the document of a service says beside its endpoints. */
export interface ServiceFacts<Route extends RouteFacts> {
  readonly title: string
  readonly description: string
  /** Routes by subject. */
  readonly subjects: Readonly<Record<string, readonly Route[]>>
  /** The media types in which an endpoint takes its fields. */
  readonly bodyTypes: (route: Route) => readonly string[]
  /** The document of a refusal. */
  readonly failure: z.ZodObject
}

/** Answers `GET /-/openapi.json` with the OpenAPI document of a service. */
export function describedBy<Route extends RouteFacts>(facts: ServiceFacts<Route>): RequestHandler {
  let document: Json | undefined
  return (request, response, next) => {
    if (request.path !== '/-/openapi.json' || !['GET', 'HEAD'].includes(request.method)) return next()
    document ??= openApiOf(facts)
    replyJson(exchangeOf(request, response), 200, document)
  }
}

/** Describes a service as OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.0.html). */
function openApiOf<Route extends RouteFacts>(facts: ServiceFacts<Route>): Json {
  const { title, description, subjects, failure } = facts
  const paths: Record<string, Record<string, Json>> = {}
  for (const [subject, routes] of Object.entries(subjects)) {
    for (const route of routes) {
      const path = route.path.replaceAll(/:(\w+)/g, '{$1}').replace(/\*$/, '{rest}')
      paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, subject, facts) }
    }
  }
  return {
    openapi: '3.1.0',
    info: { title, version: version(), description, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/' }],
    tags: Object.keys(subjects).map((name) => ({ name, description: `Endpoints about ${name}.` })),
    paths,
    components: {
      ...(needsToken(facts) && {
        securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      }),
      schemas: { Failure: schemaOf(failure) },
    },
  }
}

function needsToken({ subjects }: Pick<ServiceFacts<RouteFacts>, 'subjects'>): boolean {
  return Object.values(subjects).some((routes) => routes.some(({ access }) => access !== 'public'))
}

const FAILURE = {
  description: 'A refusal, which says why.',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Failure' } } },
}

function operationOf<Route extends RouteFacts>(
  route: Route,
  subject: string,
  { bodyTypes }: ServiceFacts<Route>,
): Json {
  const { method, path, summary, access, body } = route
  const words = path.split(/\W+/).filter((word) => word !== '')
  const content = body && Object.fromEntries(bodyTypes(route).map((type) => [type, { schema: bodyOf(route, type) }]))
  return {
    operationId: [method.toLowerCase(), ...words].join('_'),
    summary: `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`,
    tags: [subject],
    security: access === 'public' ? [] : [...(access === 'optional' ? [{}] : []), { bearer: [] }],
    parameters: parametersOf(route),
    ...(content && { requestBody: { required: true, content } }),
    responses: { ...success(route), '4XX': FAILURE, '5XX': FAILURE },
  }
}

function success({ method, answer, produces }: RouteFacts): Json {
  if (method === 'OPTIONS') return { '204': { description: 'What other origins may ask for.' } }
  const content = answer ? { 'application/json': { schema: schemaOf(answer) } } : { [produces ?? '*/*']: {} }
  return { '200': { description: 'Done.', ...(method !== 'HEAD' && { content }) } }
}

function bodyOf({ body, files = [] }: RouteFacts, type: string): Json {
  const schema = body === undefined ? { type: 'object' } : schemaOf(body)
  if (type !== 'multipart/form-data' || files.length === 0) return schema
  const parts = files.map((name) => [name, { type: 'string', contentMediaType: 'application/octet-stream' }])
  return { ...schema, properties: { ...propertiesOf(schema), ...Object.fromEntries(parts) } }
}

function parametersOf({ path, params, query }: RouteFacts): Json[] {
  const rest = path.endsWith('/*') ? [parameter('path', 'rest', { type: 'string' }, true)] : []
  return [...rest, ...inPlace('path', params), ...inPlace('query', query)]
}

function inPlace(place: 'path' | 'query', schema: z.ZodObject | undefined): Json[] {
  if (schema === undefined) return []
  const json = schemaOf(schema)
  const required = (json.required ?? []) as readonly string[]
  return Object.entries(propertiesOf(json)).map(([name, { description, ...rest }]) => ({
    ...parameter(place, name, rest, place === 'path' || required.includes(name)),
    ...(description !== undefined && { description }),
  }))
}

function parameter(place: 'path' | 'query', name: string, schema: Json, required: boolean): Json {
  return { name, in: place, required, schema }
}

function propertiesOf(schema: Json): Readonly<Record<string, Json>> {
  return (schema.properties ?? {}) as Readonly<Record<string, Json>>
}

/** What clients send or get, without the rules that JSON Schema cannot express. */
function schemaOf(schema: z.ZodObject): Json {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Json
  return json
}
