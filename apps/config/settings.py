"""Settings come from the environment, are listed in the README's table, and fail loudly."""

from functools import partial
from pathlib import Path
from typing import cast

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import SimpleLazyObject

from apps.core import embedded
from apps.core.environment import env_bool, env_int, env_list, env_path, env_str

BASE_DIR = Path(__file__).resolve().parents[2]
HOME = env_path("TOUCHSTONE_HOME", BASE_DIR / "var")
DATA = env_path("TOUCHSTONE_DATA", BASE_DIR.parent / "shared" / "data")

DEBUG = env_bool("TOUCHSTONE_DEBUG", False)
# Lazy: `manage.py help` and mypy read these settings and should write nothing.
SECRET_KEY = env_str("TOUCHSTONE_SECRET_KEY", "") or cast(
    str, SimpleLazyObject(partial(embedded.secret_key, HOME))
)
ALLOWED_HOSTS = env_list("TOUCHSTONE_ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env_list("TOUCHSTONE_TRUSTED_ORIGINS", [])
PUBLIC_URL = env_str("TOUCHSTONE_PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "ninja",
    "apps.core",
    "apps.accounts",
    "apps.trajectories",
    "apps.rubrics",
    "apps.annotation",
    "apps.datasets",
    "apps.training",
    "apps.rewards",
    "apps.demo",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "apps.core.middleware.DomainErrorMiddleware",
    "apps.core.middleware.ContentSecurityPolicyMiddleware",
    "apps.core.api.MethodProblemMiddleware",
]

ROOT_URLCONF = "apps.config.urls"
ASGI_APPLICATION = "apps.config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "apps.core.context.site",
            ],
        },
    }
]

# One dialect everywhere: PostgreSQL, yours by DATABASE_URL or the embedded one of this home.
DATABASE_IS_EMBEDDED = not env_str("DATABASE_URL", "")
DATABASE_URL = env_str("DATABASE_URL", "") or embedded.database_url(HOME)
DATABASES = {"default": dj_database_url.parse(DATABASE_URL, conn_max_age=0)}
if DATABASES["default"]["ENGINE"] != "django.db.backends.postgresql":
    raise ImproperlyConfigured(
        "DATABASE_URL must name a PostgreSQL database: postgresql://user:password@host:port/name"
    )
DB_POOL = env_int("TOUCHSTONE_DB_POOL", 20)  # connections of a web process; the others hold one each
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "accounts:login"
LOGIN_REDIRECT_URL = "accounts:home"
LOGOUT_REDIRECT_URL = "accounts:login"

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = HOME / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": HOME / "files"},
    },
    "artifacts": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": HOME / "artifacts"},
    },
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
if env_str("TOUCHSTONE_S3_BUCKET", ""):
    STORAGES["artifacts"] = {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": env_str("TOUCHSTONE_S3_BUCKET", ""),
            "endpoint_url": env_str("TOUCHSTONE_S3_URL", "") or None,
        },
    }

MAX_RECORD_BYTES = env_int("TOUCHSTONE_MAX_RECORD_MB", 64) * 2**20
DATA_UPLOAD_MAX_MEMORY_SIZE = env_int("TOUCHSTONE_MAX_FORM_MB", 8) * 2**20

# The reward service, as the web process and the commands reach it: where `up` says it runs, unless told otherwise.
REWARDS_ADDRESS_FILE = "rewards-address"
_running = HOME / REWARDS_ADDRESS_FILE
_rewards_default = _running.read_text() if _running.is_file() else "http://127.0.0.1:8001"
REWARDS_URL = env_str("TOUCHSTONE_REWARDS_URL", "").rstrip("/")
REWARDS_ADDRESS = env_str("TOUCHSTONE_REWARDS_ADDRESS", _rewards_default).rstrip("/")
REWARDS_DEVICE = env_str("TOUCHSTONE_REWARDS_DEVICE", "cpu")
TRAINING_DEVICE = env_str("TOUCHSTONE_TRAINING_DEVICE", "auto")
REWARDS_MAX_BODY_BYTES = env_int("TOUCHSTONE_REWARDS_MAX_MB", 64) * 2**20
REWARDS_BATCH_TOKENS = env_int("TOUCHSTONE_REWARDS_BATCH_TOKENS", 8192)
REWARDS_QUEUE_TOKENS = env_int("TOUCHSTONE_REWARDS_QUEUE_TOKENS", 500_000)
REWARDS_CACHE_BYTES = env_int("TOUCHSTONE_REWARDS_CACHE_MB", 256) * 2**20

# Celery carries nudges, never data: no results, no retries, one at a time (docs/decisions.md).
# Without one: a database beside the embedded one, or two tables in yours.
_EMBEDDED_BROKER = embedded.broker_url(HOME) if DATABASE_IS_EMBEDDED else embedded.broker_in(DATABASE_URL)
CELERY_BROKER_URL = env_str("CELERY_BROKER_URL", "") or _EMBEDDED_BROKER
CELERY_BROKER_TRANSPORT_OPTIONS = {"pool_pre_ping": True} if CELERY_BROKER_URL.startswith("sqla") else {}
CELERY_TASK_IGNORE_RESULT = True
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_ACKS_LATE = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_ROUTES = {"apps.training.tasks.*": {"queue": "gpu"}}

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_URL.startswith("https://")
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if env_bool("TOUCHSTONE_BEHIND_PROXY", False) else None
)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": env_str("TOUCHSTONE_LOG_LEVEL", "INFO")},
    # It logs whole addresses, and trainers may send their key in one.
    "loggers": {"httpx": {"level": "WARNING"}},
}
