import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


# The trail is append-only for everybody: single rows can be neither changed nor deleted. A whole project takes its
# trail along, through the constraint's ON DELETE CASCADE, which is the only way to reach the trigger at depth two.
AUDIT_SQL = """
ALTER TABLE accounts_auditevent ADD CONSTRAINT auditevent_project
    FOREIGN KEY (project_id) REFERENCES accounts_project ON DELETE CASCADE;
CREATE FUNCTION accounts_audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND pg_trigger_depth() > 1 THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'audit events are append-only' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON accounts_auditevent
    FOR EACH ROW EXECUTE FUNCTION accounts_audit_append_only();
"""
AUDIT_SQL_BACK = """
DROP TRIGGER audit_append_only ON accounts_auditevent;
DROP FUNCTION accounts_audit_append_only();
ALTER TABLE accounts_auditevent DROP CONSTRAINT auditevent_project;
"""


class Migration(migrations.Migration):

    replaces = [('accounts', '0001_initial'), ('accounts', '0002_invitations'), ('accounts', '0003_annotators_see_models'), ('accounts', '0004_key_owners')]

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.CreateModel(
            name='Project',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=60, unique=True)),
                ('name', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('annotators_see_models', models.BooleanField(default=False)),
            ],
        ),
        migrations.CreateModel(
            name='User',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('email', models.EmailField(max_length=254, unique=True)),
                ('name', models.CharField(blank=True, max_length=200)),
                ('is_active', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('email'), name='user_email_lower')],
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('annotator', 'Annotator'), ('reviewer', 'Reviewer'), ('researcher', 'Researcher'), ('owner', 'Owner')], max_length=10)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='accounts.project')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'user'), name='membership_once'), models.CheckConstraint(condition=models.Q(('role__in', ['annotator', 'reviewer', 'researcher', 'owner'])), name='membership_role')],
            },
        ),
        migrations.CreateModel(
            name='AuditEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('actor', models.CharField(max_length=254)),
                ('verb', models.CharField(max_length=60)),
                ('target', models.CharField(blank=True, max_length=200)),
                ('data', models.JSONField(default=dict)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('project', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='audit_events', to='accounts.project')),
            ],
            options={
                'indexes': [models.Index(fields=['project', '-at'], name='accounts_au_project_b84364_idx')],
            },
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('annotator', 'Annotator'), ('reviewer', 'Reviewer'), ('researcher', 'Researcher'), ('owner', 'Owner')], max_length=10)),
                ('email', models.EmailField(blank=True, max_length=254)),
                ('prefix', models.CharField(max_length=16, unique=True)),
                ('hash', models.CharField(max_length=64, unique=True)),
                ('uses', models.PositiveIntegerField(default=0)),
                ('most_uses', models.PositiveIntegerField(default=1)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(null=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='accounts.project')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('uses__lte', models.F('most_uses'))), name='invitation_uses'), models.CheckConstraint(condition=models.Q(('role__in', ['annotator', 'reviewer', 'researcher', 'owner'])), name='invitation_role')],
            },
        ),
        migrations.CreateModel(
            name='ServiceAccount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(max_length=60)),
                ('is_active', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='service_accounts', to='accounts.project')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='service_account_once')],
            },
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(blank=True, max_length=100)),
                ('prefix', models.CharField(max_length=16, unique=True)),
                ('hash', models.CharField(max_length=64, unique=True)),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('ingest', 'Ingest'), ('feedback:read', 'Feedback Read'), ('feedback:write', 'Feedback Write'), ('train', 'Train'), ('reward', 'Reward'), ('admin', 'Admin')], max_length=20), size=None)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField(null=True)),
                ('revoked_at', models.DateTimeField(null=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_keys', to='accounts.project')),
                ('owner_user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='api_keys', to=settings.AUTH_USER_MODEL)),
                ('owner_service_account', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='api_keys', to='accounts.serviceaccount')),
                ('note', models.CharField(blank=True, max_length=200)),
                ('requests_per_minute', models.PositiveIntegerField(null=True)),
                ('tokens_per_minute', models.PositiveBigIntegerField(null=True)),
                ('tokens_per_day', models.PositiveBigIntegerField(null=True)),
                ('allowed_networks', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), default=list, size=None)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('scopes__contained_by', ['ingest', 'feedback:read', 'feedback:write', 'train', 'reward', 'admin'])), name='apikey_scopes'), models.CheckConstraint(condition=models.Q(('owner_user', None), ('owner_service_account', None), _connector='XOR'), name='apikey_one_owner')],
            },
        ),
        migrations.CreateModel(
            name='IdempotentResponse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=255)),
                ('request_hash', models.CharField(max_length=64)),
                ('body_hash', models.CharField(max_length=64)),
                ('status', models.PositiveSmallIntegerField(default=0)),
                ('body', models.TextField(default='')),
                ('created_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('api_key', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.apikey')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.project')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'key', 'request_hash'), name='idempotent_once')],
            },
        ),
        migrations.RunSQL(AUDIT_SQL, AUDIT_SQL_BACK),
    ]
