import { z } from 'zod'
import { OutcomeUnknown, S3Error } from '../../../../common/errors/s3-error.js'
import type { Plugin } from '../../../../src/api/plugin.js'
import { PageOf, withRaw } from '../../../../src/plugins/calls/call.js'
import { defineCall } from '../../../../src/plugins/calls/define-call.js'
import { definePlugin } from '../../../../src/plugins/define-plugin.js'

/** A plugin with a call of every form. What it is asked for is kept in `asked`. */
export function examplePlugin(asked: unknown[] = []): Plugin {
  const things = Array.from({ length: 25 }, (_, i) => ({ Name: `thing-${i}`, Size: i }))
  const thing = z.object({ Name: z.string(), Size: z.number() })
  const kind = z.enum(['big', 'small'])

  const getThing = defineCall({
    name: 'GetThing',
    source: 'docs/test.md',
    summary: 'One thing.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/test/v1/things/{Name}' },
    result: thing,
    presignable: true,
    async answer({ request }) {
      const found = things.find(({ Name }) => Name === request.params.Name)
      if (!found) throw new S3Error('NoSuchKey', { fields: { Violations: ['no', 'thing'] } })
      return withRaw(found, { upstream_name: found.Name })
    },
  })

  const listThings = defineCall({
    name: 'ListThings',
    source: 'docs/test.md',
    summary: 'All things.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/test/v1/things' },
    query: z.strictObject({
      kind: kind.optional(),
      'min-size': z.coerce.number().int().optional(),
      'by-itself': z.coerce.boolean().optional(),
      streamed: z.coerce.boolean().optional(),
    }),
    result: z.object({ Thing: z.array(thing) }),
    pages: 'Thing',
    csv: { list: 'Thing' },
    async answer({ query, page }) {
      asked.push(query)
      const found = things.filter(({ Size }) => Size >= (query['min-size'] ?? 0))
      if (query['by-itself']) {
        const at = found.findIndex(({ Name }) => Name === page.from) + 1
        const items = found.slice(at, at + page.limit)
        return { Thing: new PageOf(items, at + page.limit < found.length ? items.at(-1)?.Name : undefined) }
      }
      if (!query.streamed) return { Thing: found }
      return {
        Thing: (async function* () {
          yield* found
        })(),
      }
    },
  })

  const body = z.strictObject({
    MinerId: z.string().min(2).optional(),
    Price: z.string().optional(),
    Count: z.number().int().max(10).optional(),
    Fast: z.boolean().optional(),
    Tags: z.array(z.string()).max(5).optional().meta({ element: 'Tag' }),
    Terms: z.array(z.strictObject({ Class: kind })).optional(),
    Extra: z.record(z.string(), z.string()).optional(),
  })

  const quote = defineCall({
    name: 'QuoteThing',
    source: 'docs/test.md',
    summary: 'What it got.',
    access: 'owner',
    on: { method: 'POST', resource: 'object', subresource: 'x-test-quote' },
    body,
    aliases: { Anzahl: 'Count', Miner_Name: 'MinerId' },
    result: z.object({ Got: body }),
    root: 'ThingQuote',
    answer: async ({ body }) => ({ Got: body }),
  })

  const replace = defineCall({
    name: 'ReplaceThing',
    source: 'docs/test.md',
    summary: 'What it got.',
    access: 'signed',
    on: { method: 'PUT', resource: 'service', path: '/-/test/v1/things/{Name}' },
    body,
    result: z.object({ Got: body }),
    answer: async ({ body }) => ({ Got: body }),
  })

  const listOfBucket = defineCall({
    name: 'ListBucketThings',
    source: 'docs/test.md',
    summary: 'Things of a bucket.',
    access: 'owner',
    on: { method: 'GET', resource: 'bucket', subresource: 'x-test' },
    result: z.object({ Bucket: z.string() }),
    answer: async ({ request }) => ({ Bucket: request.bucket }),
  })

  const create = defineCall({
    name: 'CreateThing',
    source: 'docs/test.md',
    summary: 'Makes a thing, in a while.',
    access: 'owner',
    on: { method: 'POST', resource: 'object', subresource: 'x-test' },
    body: z.strictObject({ How: z.enum(['soon', 'late', 'badly', 'nobody knows']), N: z.number().optional() }),
    result: z.object({ Made: z.string() }),
    job: 'test:CreateThing',
    spends: true,
    async order({ request, body }) {
      asked.push(body)
      if (request.key === 'nothing') throw new S3Error('NoSuchKey')
      return { resource: `/${request.bucket}/${request.key}`, input: body }
    },
  })

  const plugin = definePlugin({
    name: 'test',
    create: () => ({
      operations: [getThing, listThings, quote, replace, listOfBucket, create],
      jobs: [
        {
          name: 'test:CreateThing',
          async run(job) {
            const { How } = job.input as { How: string }
            job.report({ phase: 'Making' })
            if (How === 'badly') throw new S3Error('DealRejected', { message: 'too cheap', fields: { Price: '1' } })
            if (How === 'nobody knows') throw new OutcomeUnknown('lost')
            if (How === 'late') await new Promise((resolve) => job.signal.addEventListener('abort', resolve))
            job.signal.throwIfAborted()
            return { Made: job.job.resource }
          },
        },
      ],
    }),
  })
  return plugin()
}
