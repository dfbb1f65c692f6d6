import t from 'tap'
import { z } from 'zod'
import { defineCall } from '../../../../src/plugins/calls/define-call.js'
import { describeCalls } from '../../../../src/plugins/describe/openapi.js'
import { lint } from './lint.js'

const tree = z.object({
  Name: z.string(),
  get Children() {
    return z.array(tree).meta({ element: 'Child' }).optional()
  },
})

const call = (path: string, result: z.ZodType<object> = tree) => ({
  plugin: 'park',
  operation: defineCall({
    name: 'Grow',
    source: 'docs/test.md',
    summary: 'Makes it larger.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path },
    result: result as typeof tree,
    answer: async () => ({ Name: '' }),
  }),
})

// biome-ignore lint/suspicious/noExplicitAny: a document of any shape, and every use compares it
const described = (...rows: ReturnType<typeof call>[]): any =>
  describeCalls({ title: 'park', version: '1', server: 'https://park.test', rows })

t.test('a schema that refers to itself stands among the components', async (t) => {
  const nested = z.object({ Tree: tree })
  const document = described(call('/-/park/v1/tree'), call('/-/park/v1/nested', nested))
  t.same(await lint(document), [])
  const answer = document.paths['/-/park/v1/tree'].get.responses[200].content['application/json'].schema
  const name = /^#\/components\/schemas\/(\w+)$/.exec(answer.$ref)?.[1] ?? ''
  t.match(document.components.schemas[name], {
    type: 'object',
    properties: {
      Children: { type: 'array', xml: { wrapped: true }, items: { $ref: answer.$ref, xml: { name: 'Child' } } },
    },
  })
})

t.test('two calls of one name have two ids', async (t) => {
  const { paths } = described(call('/-/park/v1/a'), call('/-/park/v1/b'))
  t.equal(paths['/-/park/v1/a'].get.operationId, 'park_Grow_GET')
  t.equal(paths['/-/park/v1/b'].get.operationId, 'park_Grow_GET_2')
})

t.test('the linter finds what is wrong', async (t) => {
  const document = described(call('/-/park/v1/a'))
  document.paths['/-/park/v1/a'].get.responses[200].content['application/json'].schema = { element: 'x' }
  t.match(await lint(document), [/element/])
})
