import t from 'tap'
import { z } from 'zod'
import { defineCall } from '../../../../src/plugins/calls/define-call.js'
import { describeForAws } from '../../../../src/plugins/describe/aws-model.js'

interface Model {
  readonly operations: Record<string, { http: object; input: { shape: string }; output: { shape: string } }>
  readonly shapes: Record<string, { type: string; members?: Record<string, { shape: string }>; required?: string[] }>
}

const tree = z.object({
  Name: z.string(),
  get Children() {
    return z.array(tree).optional()
  },
})

const grow = (plugin: string) => ({
  plugin,
  operation: defineCall({
    name: 'Grow',
    source: 'docs/test.md',
    summary: 'Makes it <larger> & larger.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: `/-/${plugin}/v1/trees/{Name}` },
    query: z.strictObject({ 'per-year': z.coerce.number().int() }),
    body: z.strictObject({
      Name: z.string(),
      Price: z.union([z.string(), z.number()]).optional(),
      Loud: z.union([z.boolean(), z.string()]),
      Kind: z.enum(['oak', 'elm']).nullable(),
      Rest: z.unknown().optional(),
      Soil: z.union([z.strictObject({ A: z.string(), B: z.string() }), z.strictObject({ A: z.string() })]),
      Notes: z.record(z.string(), z.array(z.number())).optional(),
    }),
    result: tree,
    answer: async () => ({ Name: '' }),
  }),
})

t.test('what a schema can say', async (t) => {
  const { operations, shapes } = describeForAws([grow('park')], 'park') as unknown as Model
  t.same(Object.keys(operations), ['Grow'])
  t.match(operations.Grow, {
    http: { method: 'POST', requestUri: '/-/park/v1/trees/{Name}?format=json' },
    documentation: '<p>Makes it &lt;larger&gt; &amp; larger.</p>',
  })
  const request = shapes[operations.Grow?.input.shape ?? '']
  t.match(request, {
    required: ['Name', 'PerYear', 'DocumentName', 'Loud', 'Kind', 'Soil'],
    members: {
      Name: { shape: 'String', location: 'uri', locationName: 'Name' },
      PerYear: { shape: 'Long', location: 'querystring', locationName: 'per-year' },
      DocumentName: { shape: 'String', locationName: 'Name' },
      Price: { shape: 'String' },
      Loud: { shape: 'Boolean' },
      Rest: { shape: 'Document' },
    },
  })
  const of = (member: string) => shapes[request?.members?.[member]?.shape ?? '']
  t.match(of('Kind'), { type: 'string', enum: ['oak', 'elm'] })
  t.match(of('Soil'), { type: 'structure', required: ['A'], members: { A: {}, B: {} } })
  t.match(of('Notes'), { type: 'map', key: { shape: 'String' } })
  const answer = shapes[operations.Grow?.output.shape ?? '']
  const children = shapes[answer?.members?.Children?.shape ?? ''] as unknown as { member: { shape: string } }
  const child = shapes[children.member.shape]
  t.match(child, { type: 'structure', members: { Name: { shape: 'String' }, Children: {} } })
  const used = JSON.stringify(shapes).matchAll(/"shape":"(\w+)"/g)
  for (const [, name = ''] of used) t.ok(name in shapes, name)
})

t.test('calls of one name in two plugins', async (t) => {
  const { operations } = describeForAws([grow('park'), grow('wood')]) as unknown as Model
  t.same(Object.keys(operations), ['ParkGrow', 'WoodGrow'])
})

t.test('calls of one name in one plugin', async (t) => {
  const { operations, shapes } = describeForAws([grow('park'), grow('park')]) as unknown as Model
  t.same(Object.keys(operations), ['Grow', 'Grow2'])
  t.ok(shapes.Grow2Request)
})
