// Layers above a database driver: Sequelize, TypeORM, Kysely, Knex, MikroORM, Objection, and the codes of postgres.js
// and libsql that no server gives. The driver's error inside them (`parent`, `driverError`) is looked at as a cause.

import { type Family, table } from "./clue.ts";

const NAMES = table({
  network: `SequelizeConnectionRefusedError SequelizeHostNotFoundError SequelizeHostNotReachableError
    CannotExecuteNotConnectedError ConnectionIsNotSetError ConnectionException`,
  timeout: `SequelizeConnectionAcquireTimeoutError SequelizeConnectionTimedOutError SequelizeTimeoutError
    KnexTimeoutError`,
  transient: `SequelizeOptimisticLockError OptimisticLockError OptimisticLockVersionMismatchError DeadlockException
    LockWaitTimeoutException`,
  authentication: "SequelizeAccessDeniedError",
  validation: `SequelizeValidationError NotNullConstraintViolationException CheckConstraintViolationException
    NotNullViolationError CheckViolationError InsertValuesMissingError UpdateValuesMissingError`,
  permanent: `SequelizeUniqueConstraintError SequelizeForeignKeyConstraintError SequelizeExclusionConstraintError
    SequelizeUnknownConstraintError SequelizeEmptyResultError SequelizeInvalidConnectionError
    SequelizeEagerLoadingError SequelizeAssociationError SequelizeScopeError NoResultError EntityNotFoundError
    EntityMetadataNotFoundError EntityPropertyNotFoundError UniqueConstraintViolationException
    ForeignKeyConstraintViolationException TableNotFoundException TableExistsException InvalidFieldNameException
    NonUniqueFieldNameException SyntaxErrorException UniqueViolationError ForeignKeyViolationError
    ConstraintViolationError DriverPackageNotInstalledError`,
});
const CODES = table({
  network:
    "CONNECTION_CLOSED CONNECTION_ENDED CONNECTION_DESTROYED CLIENT_CLOSED HRANA_WEBSOCKET_ERROR POOL_NONEONLINE",
  timeout: "CONNECT_TIMEOUT",
  transient: "TRANSACTION_CLOSED SERVER_ERROR HRANA_CLOSED_ERROR",
  validation: "UNDEFINED_VALUE MAX_PARAMETERS_EXCEEDED URL_INVALID",
  permanent: `NOT_TAGGED_CALL UNSAFE_TRANSACTION COPY_IN_PROGRESS URL_SCHEME_NOT_SUPPORTED URL_PARAM_NOT_SUPPORTED
    SYNC_NOT_SUPPORTED ENCRYPTION_KEY_NOT_SUPPORTED POOL_NOEXIST`,
  authentication: "SASL_SIGNATURE_MISMATCH AUTH_TYPE_NOT_IMPLEMENTED MYSQL_CLEAR_PASSWORD_NOT_ENABLED",
});

/** Layers above a driver. */
export const orm: Family = ({ name, type, code }) => NAMES.get(name) ?? NAMES.get(type) ?? CODES.get(code);
