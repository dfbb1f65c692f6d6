/** Where the services report to. A pino logger fits. Never handed a secret, a token or a key pair. */
export interface ServicesLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

const nothing = (): void => {}

export const silentLog: ServicesLog = Object.freeze({ info: nothing, warn: nothing, error: nothing })
