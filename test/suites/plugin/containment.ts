import type { StorageClass } from '../../../src/api/context.js'
import type { PluginHooks } from '../../../src/api/hooks.js'
import type { AnyOperation } from '../../../src/api/operation.js'
import type { Plugin } from '../../../src/api/plugin.js'
import { type MadePlugin, STANDARD } from '../../../src/plugins/define-plugin.js'
import { type Asked, ask, described, refusalProblem } from './client.js'
import { BUCKET, KEY, requestFor } from './requests.js'
import type { Bench, Running } from './server.js'
import { type CheckResult, result, type Subject } from './subject.js'

const DEADLINE_MS = 200
const hang = () => new Promise<never>(() => {})

/** Ways to go wrong that no server may suffer from. */
const FAULTS: Readonly<Record<string, () => unknown>> = {
  'throws at once': () => {
    throw new Error('fault of the plugin suite')
  },
  rejects: async () => {
    throw undefined
  },
  hangs: hang,
  'answers with nonsense': async () => ({ status: 42 }),
}

const HOOKS: readonly (keyof PluginHooks)[] = ['objectStored', 'objectDeleted', 'objectTagged']

/**
 * Faults in the plugin's place: the client gets an answer, the log names plugin and operation or hook, and the server
 * lives.
 */
export async function* checkContainment(subject: Subject, bench: Bench): AsyncGenerator<CheckResult> {
  const plugin = subject.make()
  const { name, operations, storageClasses = [] } = plugin
  for (const [fault, behave] of Object.entries(FAULTS)) {
    const faulty = faultyPlugin(plugin, behave)
    const limits = { pluginDeadlineMs: DEADLINE_MS, hookDeadlineMs: DEADLINE_MS }
    const server = await bench.start({ data: 'containment', plugins: [faulty], limits })
    for (const operation of operations) {
      const problem = await handlerProblem(server, name, operation)
      yield result(`${operation.name}: contained when its handler ${fault}`, problem)
    }
    if (fault !== 'answers with nonsense')
      yield result(`hooks: contained when one ${fault}`, await hookProblem(server, name))
    for (const offered of storageClasses)
      yield result(
        `storage class ${offered.name}: contained when it ${fault}`,
        await classProblem(server, name, offered.name),
      )
    const { status } = await ask(server, { method: 'GET', target: '/-/live' }, 'unsigned')
    yield result(`the server lives when a handler ${fault}`, status === 200 ? undefined : `/-/live answers ${status}`)
    await server.stop()
  }
}

function faultyPlugin(
  { name, operations, storageClasses, [STANDARD]: standard }: MadePlugin,
  behave: () => unknown,
): Plugin {
  const run = behave as AnyOperation['run']
  return {
    name,
    storageClasses: storageClasses?.map(
      (offered) => ({ name: offered.name, admit: behave, transition: behave }) as StorageClass,
    ),
    operations: operations.map((operation) => ({ ...operation, run, deadlineMs: DEADLINE_MS }) as AnyOperation),
    hooks: Object.fromEntries(HOOKS.map((hook) => [hook, behave])) as PluginHooks,
    ...(standard && { [STANDARD]: standard }),
  } as Plugin
}

async function handlerProblem(server: Running, plugin: string, operation: AnyOperation): Promise<string | undefined> {
  const asked = requestFor(operation)
  const answer = await ask(server, asked)
  if (asked.method === 'HEAD') return answer.status === 500 ? undefined : `the answer is ${described(answer)}`
  const named = server.lines.some((line) => line.plugin === plugin && line.operation === operation.name)
  return refusalProblem(answer, 500, 'InternalError') ?? (named ? undefined : 'the log does not name it')
}

async function hookProblem(server: Running, plugin: string): Promise<string | undefined> {
  const target = `/${BUCKET}/${KEY}`
  const tags = '<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>'
  const steps: readonly Asked[] = [
    { method: 'PUT', target: `/${BUCKET}` },
    { method: 'PUT', target, body: Buffer.from('hooked') },
    { method: 'PUT', target: `${target}?tagging=`, body: Buffer.from(tags) },
    { method: 'DELETE', target },
  ]
  for (const step of steps) {
    const answer = await ask(server, step)
    // The bucket is there already when another fault came before.
    if (answer.status >= 300 && answer.code !== 'BucketAlreadyOwnedByYou')
      return `the answer to ${step.method} ${step.target} is ${described(answer)}`
  }
  const named = HOOKS.filter((hook) => server.lines.some((line) => line.plugin === plugin && line.hook === hook))
  return named.length === HOOKS.length ? undefined : `the log names only the failure of ${named.join(', ') || 'none'}`
}

/** A class that cannot say whether it takes an object has not taken it. */
async function classProblem(server: Running, plugin: string, storageClass: string): Promise<string | undefined> {
  const target = `/${BUCKET}/cold`
  await ask(server, { method: 'PUT', target: `/${BUCKET}` })
  const headers = { 'x-amz-storage-class': storageClass }
  const answer = await ask(server, { method: 'PUT', target, headers, body: Buffer.from('cold') })
  const stored = await ask(server, { method: 'HEAD', target })
  if (stored.status !== 404) return `the object was stored: HEAD answers ${described(stored)}`
  const named = server.lines.some((line) => JSON.stringify(line).includes(`of the plugin \\"${plugin}\\" failed`))
  return refusalProblem(answer, 500, 'InternalError') ?? (named ? undefined : 'the log does not name it')
}
