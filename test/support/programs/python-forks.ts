import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'

export interface Task {
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

export interface Result {
  /** Null when ended by a signal. */
  readonly code: number | null
  readonly stdout: Buffer
  readonly stderr: Buffer
}

/** Bytes before the output of a program: its process id, exit code, and the length of its standard output. */
const HEAD = 9

/** The socket of the interpreter that runs this program in forks: test/runner/python-programs.ts. */
export function forksOf(program: string): string | undefined {
  const { FORKED_PROGRAMS: folder } = process.env
  return folder && program.startsWith(join(folder, '/')) ? join(program, '..', 'socket') : undefined
}

/**
 * Runs the program in a fork without standard input, its output in memory. To start the stand-in of the program would
 * cost a third of what most commands cost.
 */
export async function runInFork(socket: string, { args, cwd, env, timeoutMs }: Task): Promise<Result> {
  const connection = connect(socket)
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const message = Buffer.from([cwd, args.length, ...args, ...variables].join('\0'))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(message.length)
  connection.write(Buffer.concat([length, message]))
  const chunks: Buffer[] = []
  connection.on('data', (chunk: Buffer) => chunks.push(chunk))
  const limit = setTimeout(() => {
    // A fork that has not said its id has not begun, and ends with the connection.
    const said = Buffer.concat(chunks)
    if (said.length >= 4) kill(said.readUInt32LE())
    else connection.destroy()
  }, timeoutMs)
  try {
    await once(connection, 'close')
  } finally {
    clearTimeout(limit)
  }
  const answer = Buffer.concat(chunks)
  if (answer.length < HEAD) return { code: null, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }
  const end = HEAD + answer.readUInt32LE(5)
  return { code: answer.readUInt8(4), stdout: answer.subarray(HEAD, end), stderr: answer.subarray(end) }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}
