import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { ConfigError } from '../config/config.js'
import { Failure } from '../failure.js'

/** Asks at the terminal. Throws ConfigError without one. */
export async function ask(question: string, instead: string): Promise<string> {
  return prompt(question, instead, true)
}

/** As `ask`, and shows nothing of the answer. */
export async function askSecretly(question: string, instead: string): Promise<string> {
  return prompt(question, instead, false)
}

async function prompt(question: string, instead: string, shown: boolean): Promise<string> {
  if (!process.stdin.isTTY) throw new ConfigError([`standard input is no terminal: give ${instead}`])
  process.stderr.write(question)
  const silent = new Writable({ write: (_, __, done) => done() })
  const reader = createInterface({ input: process.stdin, output: shown ? process.stderr : silent, terminal: true })
  try {
    const interrupted = new Promise<never>((_, reject) => {
      reader.once('SIGINT', () => reject(new Failure('interrupted')))
    })
    return await Promise.race([reader.question(''), interrupted])
  } finally {
    reader.close()
    if (!shown) process.stderr.write('\n')
  }
}
