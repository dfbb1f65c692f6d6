/**
 * A CAR is `Packed` until the task for it is posted, then `TaskCreated`, `DealSent` once it has a deal, and `Completed`
 * when its uploads are settled. `duration` is in epochs. `polled` is the last epoch at which its deals were asked for.
 */
export const dealingSchema = `
  ALTER TABLE cars ADD COLUMN md5 TEXT NOT NULL DEFAULT '';
  ALTER TABLE cars ADD COLUMN duration INTEGER NOT NULL DEFAULT 0;
  CREATE UNIQUE INDEX cars_by_task ON cars (task);
  CREATE INDEX open_cars ON cars (id) WHERE status <> 'Completed';
`

/** The providers that failed with a CAR, with a space behind each. */
export const triedSchema = "ALTER TABLE cars ADD COLUMN tried TEXT NOT NULL DEFAULT ''"
