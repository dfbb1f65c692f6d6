/** Replication lag of a replica that causes a warning, seconds. */
const LAG_SECONDS = 10

type Facts = ReadonlyMap<string, string>

/**
 * Warnings about Redis settings that may lose acknowledged records.
 * @param info runs `INFO <section>` (https://redis.io/docs/latest/commands/info/)
 * @param config runs `CONFIG GET <name>`, which managed services refuse; its settings are skipped then
 */
export async function redisAdvice(
  info: (section: string) => Promise<unknown>,
  config: (name: string) => Promise<unknown>,
): Promise<string[]> {
  const read = async (section: string) => readInfo(String(await info(section)))
  const [persistence, memory, replication] = await Promise.all([
    read('persistence'),
    read('memory'),
    read('replication'),
  ])
  const appendfsync = await config('appendfsync').then(
    (found) => (found as Record<string, unknown> | null)?.appendfsync,
    () => undefined,
  )
  return [
    ...persistenceAdvice(persistence.get('aof_enabled'), appendfsync),
    ...memoryAdvice(Number(memory.get('maxmemory')), memory.get('maxmemory_policy')),
    ...replicationAdvice(replication),
  ]
}

function persistenceAdvice(appendOnly: string | undefined, appendfsync: unknown): string[] {
  if (appendOnly === '0') {
    return [
      'Redis keeps no append-only file: a restart loses acknowledged records. Set `appendonly yes` and `appendfsync always`, or use Postgres.',
    ]
  }
  if (appendfsync === undefined || appendfsync === 'always') return []
  return [
    `Redis has \`appendfsync ${String(appendfsync)}\`: a crash of its machine loses what was acknowledged last. Set \`appendfsync always\`, or use Postgres.`,
  ]
}

/** Includes the policies that evict only expiring keys: the locks among proxies are such keys. */
function memoryAdvice(maxmemory: number, policy: string | undefined): string[] {
  if (!(maxmemory > 0) || policy === undefined || policy === 'noeviction') return []
  return [
    `Redis has \`maxmemory-policy ${policy}\`: it removes records and locks when its memory is full. Set \`maxmemory-policy noeviction\`.`,
  ]
}

function replicationAdvice(replication: Facts): string[] {
  if (replication.get('role') === 'slave') {
    return ['This Redis is a replica: it refuses writes, or loses them. Name the primary in --state.']
  }
  const count = Number(replication.get('connected_slaves') ?? 0)
  if (count === 0) return []
  const advice = [
    'Redis has asynchronous replicas: a failover to one loses what was acknowledged last. Set `min-replicas-to-write 1`, and prefer Postgres with synchronous replication.',
  ]
  for (let i = 0; i < count; i++) {
    const replica = replication.get(`slave${i}`) ?? ''
    const lag = Number(/(?:^|,)lag=(\d+)/.exec(replica)?.[1] ?? 0)
    if (/(?:^|,)state=online/.test(replica) && lag <= LAG_SECONDS) continue
    advice.push(`A replica of Redis is ${lag} seconds behind or not in step (${replica}): repair it before a failover.`)
  }
  return advice
}

function readInfo(text: string): Facts {
  return new Map(
    text.split('\r\n').flatMap((line): [string, string][] => {
      const at = line.indexOf(':')
      return line.startsWith('#') || at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)]]
    }),
  )
}
