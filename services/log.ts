/** Receives log records of the services; a pino logger fits. Records never contain secrets, tokens or key pairs. */
export interface ServicesLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

const nothing = (): void => {}

export const silentLog: ServicesLog = Object.freeze({ info: nothing, warn: nothing, error: nothing })
